/**
 * How request bodies are read: only JSON in UTF-8. An empty body counts as none, whatever type it
 * declares.
 */
import { isUtf8 } from "node:buffer";
import type { App } from "./context.ts";
import { HttpProblem } from "./problem.ts";

export const jsonBodies = (app: App): void => {
  // Both refuse with 400: a body that sets a prototype is an attack, not a mistake.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    if (bytes.length === 0) done(null, undefined);
    // Decoded all the same it would hold replacement characters, and two passwords be one.
    else if (!isUtf8(bytes)) done(new HttpProblem("BAD_REQUEST", "The body is not UTF-8."));
    else parse(request, bytes.toString(), done);
  });
};
