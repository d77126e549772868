/** `/` redirects to the pages about the API. */
import type { App } from "../context.ts";

export const homeRoute = (app: App): void => {
  // Relative, so that it is right behind a proxy that serves the relay under a path.
  app.get("/", { schema: { hide: true } }, async (_request, reply) => reply.redirect("api/docs"));
};
