/**
 * How request bodies are read: only JSON in UTF-8 that can be given back as it came. An empty body
 * counts as none, whatever type it declares: curl, Python and some proxies add one.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { ERRORS } from "@blindrelay/protocol";
import type { FastifyRequest } from "fastify";
import type { App } from "./base/context.ts";
import { unfaithful } from "./base/faithful.ts";
import { HttpProblem } from "./base/problem.ts";
import { InvalidRequest } from "./base/validation.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Its texts are only compared, and wrong if nothing could be equal to them: a login's. */
    storesNoText?: boolean;
  }
}

/** Whether the head says so; a chunked body may turn out to be empty. */
const isEmpty = (headers: IncomingHttpHeaders): boolean =>
  headers["transfer-encoding"] === undefined && (headers["content-length"] ?? "0") === "0";

/** Fastify refuses another text before anybody has looked at the body. */
const MEDIA_TYPE = /^\s*[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/;

const anotherType = (): HttpProblem =>
  new HttpProblem("UNSUPPORTED_MEDIA_TYPE", ERRORS.UNSUPPORTED_MEDIA_TYPE.meaning);

export const jsonBodies = (app: App): void => {
  // Both are refused with 400: a body that sets a prototype is an attack, not a mistake.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    if (bytes.length === 0) done(null, undefined);
    // Decoding it would insert replacement characters, so two passwords could become equal.
    else if (!isUtf8(bytes)) done(new HttpProblem("BAD_REQUEST", "The body is not UTF-8."));
    else {
      const text = bytes.toString();
      parse(request, text, (error, value) => {
        const isChecked = error === null && request.routeOptions.config.storesNoText !== true;
        const errors = isChecked ? unfaithful(text, value) : [];
        done(errors.length === 0 ? error : new InvalidRequest(errors), value);
      });
    }
  });
  app.addHook("onRequest", async ({ headers, routeOptions }) => {
    if (routeOptions.config.streams === true) return;
    const { "content-type": type = "" } = headers;
    if (isEmpty(headers) || !MEDIA_TYPE.test(type)) delete headers["content-type"];
  });
  app.addContentTypeParser("*", async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.is404) return;
    if (Number(request.headers["content-length"] ?? 0) > 0) throw anotherType();
    // The rest is left to the answer, which ends the connection.
    for await (const _ of payload.iterator({ destroyOnReturn: false })) throw anotherType();
  });
};
