/** Shuts down the REST server: it accepts no new connections, and answers requests in progress. */
import type { App } from "./base/context.ts";

/** After this, a long upload or download is aborted. */
const ANSWER_TIMEOUT_MS = 5000;
/** How often to close connections that were kept alive after their response. */
const LET_GO_MS = 50;

export const closeApp = async (app: App): Promise<void> => {
  const lettingGo = setInterval(() => app.server.closeIdleConnections(), LET_GO_MS);
  const cut = setTimeout(() => app.server.closeAllConnections(), ANSWER_TIMEOUT_MS);
  await app.close();
  clearInterval(lettingGo);
  clearTimeout(cut);
};
