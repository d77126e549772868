/** `/console`: the live console, a web page for people. Not part of the API. */
import { createHash } from "node:crypto";
import { AssetParams } from "@blindrelay/protocol/schema/rest";
import type { FastifyReply, FastifyRequest } from "fastify";
import {
  CONSOLE_FILES,
  CONSOLE_PAGE,
  CONSOLE_PERMISSIONS,
  CONSOLE_POLICY,
  type ConsoleFile,
} from "../../console/page.ts";
import type { App } from "../base/context.ts";
import { notFound } from "../base/problem.ts";

export const consoleRoutes = (app: App): void => {
  app.get("/console", { schema: { hide: true } }, async (request, reply) => {
    reply.header("content-security-policy", CONSOLE_POLICY);
    reply.header("permissions-policy", CONSOLE_PERMISSIONS);
    reply.header("referrer-policy", "no-referrer");
    return send(request, reply, CONSOLE_PAGE);
  });

  app.get("/console/", { schema: { hide: true } }, async (_request, reply) =>
    reply.redirect("../console"),
  );

  app.get(
    "/console/:asset",
    { schema: { hide: true, params: AssetParams } },
    async (request, reply) => {
      const { asset: name } = request.params;
      const file = Object.hasOwn(CONSOLE_FILES, name) ? CONSOLE_FILES[name] : undefined;
      if (file === undefined) throw notFound("file");
      return send(request, reply, file);
    },
  );
};

/** Revalidated each time: page and script must be of one version. */
const send = async (request: FastifyRequest, reply: FastifyReply, file: ConsoleFile) => {
  const bytes = await file.read();
  const tag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  reply.header("cache-control", "no-cache").header("etag", tag);
  if (request.headers["if-none-match"] === tag) return reply.code(304).send();
  return reply.type(file.type).send(bytes);
};
