/**
 * How request bodies are read: only JSON in UTF-8. An empty body counts as none, whatever type it
 * declares.
 */
import { isUtf8 } from "node:buffer";
import type { App } from "./base/context.ts";
import { HttpProblem } from "./base/problem.ts";

export const jsonBodies = (app: App): void => {
  // Both are refused with 400: a body that sets a prototype is an attack, not a mistake.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    if (bytes.length === 0) done(null, undefined);
    // Decoding it would insert replacement characters, so two passwords could become equal.
    else if (!isUtf8(bytes)) done(new HttpProblem("BAD_REQUEST", "The body is not UTF-8."));
    else parse(request, bytes.toString(), done);
  });
};
