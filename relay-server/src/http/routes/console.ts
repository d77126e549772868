/** `/console`: the live console, a web page for people. Not part of the API. */
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
import { keptText, sendKept } from "../base/kept.ts";
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
const send = async (request: FastifyRequest, reply: FastifyReply, { type, read }: ConsoleFile) =>
  sendKept(request, reply, keptText(type, await read()));
