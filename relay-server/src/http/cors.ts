/**
 * CORS for browser pages of other origins, off unless the operator names some. There are no
 * cookies: a page needs a token, so an allowed origin gains nothing by itself.
 */
import { SIGNATURE_HEADER } from "@blindrelay/protocol/releases";
import { IDEMPOTENCY_HEADER } from "@blindrelay/protocol/schema/rest";
import cors from "@fastify/cors";
import type { App } from "./base/context.ts";

/** How long a browser remembers the answer to a preflight. */
const PREFLIGHT_MAX_AGE_S = 600;

export const allowOrigins = (app: App, origins: readonly string[]): void => {
  app.register(cors, {
    origin: [...origins],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: [
      "authorization",
      "content-type",
      "range",
      IDEMPOTENCY_HEADER,
      SIGNATURE_HEADER,
    ],
    exposedHeaders: [
      "x-request-id",
      "retry-after",
      "location",
      "idempotency-replayed",
      "date",
      "etag",
      "content-range",
    ],
    maxAge: PREFLIGHT_MAX_AGE_S,
  });
};
