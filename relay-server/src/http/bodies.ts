/** How bodies are read: JSON only, and an empty one is no body, whatever its declared type. */
import type { App } from "./app.ts";

export const jsonBodies = (app: App): void => {
  // Both refuse with 400: a body that sets a prototype is an attack, not a mistake.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else parse(request, body as string, done);
  });
};
