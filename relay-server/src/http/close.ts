/** Shuts down the REST server: it accepts no new connections, and answers requests in progress. */
import { setTimeout as sleep } from "node:timers/promises";
import { contained } from "../base/contain.ts";
import type { App } from "./base/context.ts";

/** After this, a long upload or download is aborted. */
const ANSWER_TIMEOUT_MS = 4000;
/** After this, the server's own end is not waited for. */
const END_TIMEOUT_MS = 4500;
/** How often to close connections that were kept alive after their response. */
const LET_GO_MS = 50;

export const closeApp = async (app: App): Promise<void> => {
  const letGo = () => app.server.closeIdleConnections();
  const lettingGo = setInterval(
    contained("timer", "cannot close idle connections", letGo),
    LET_GO_MS,
  );
  const cutAll = () => app.connections.destroyAll();
  const cut = setTimeout(contained("timer", "connections stay", cutAll), ANSWER_TIMEOUT_MS);
  await Promise.race([app.close(), sleep(END_TIMEOUT_MS, null, { ref: false })]);
  clearInterval(lettingGo);
  clearTimeout(cut);
};
