/** Whole documents and files, sent with an ETag. */
import { hash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { namesEtag } from "./etag.ts";

/** What does not change while the relay runs: made once. */
export interface Kept {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

export const keptText = (type: string, text: string | Buffer): Kept => {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  return { type, bytes, etag: `"${hash("sha256", bytes, "base64url")}"` };
};

/** Bypasses the serializer, which would drop members that the response schema does not name. */
export const sendKept = (request: FastifyRequest, reply: FastifyReply, kept: Kept): never => {
  reply.header("etag", kept.etag);
  if (reply.getHeader("cache-control") === "no-store") reply.header("cache-control", "no-cache");
  if (namesEtag(request.headers["if-none-match"], kept.etag)) {
    return reply.code(304).send() as never;
  }
  return reply.type(kept.type).send(kept.bytes) as never;
};
