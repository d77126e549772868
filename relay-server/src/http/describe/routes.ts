/** The service describes itself (section 4): two documents for programs, two pages for people. */
import { AssetParams, AsyncapiDocument, OpenapiDocument } from "@blindrelay/protocol/schema/rest";
import type { FastifyReply } from "fastify";
import { Type } from "typebox";
import type { App, HttpContext } from "../context.ts";
import { notFound } from "../problem.ts";
import { asyncapiDocument } from "./asyncapi.ts";
import type { OpenapiDocument as Document } from "./openapi.ts";
import { PAGES, type Page } from "./pages.ts";

/** The bundles change with the program only. */
const ASSETS_KEPT = "public, max-age=3600";
const HTML_TYPE = "text/html; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";

export const describeRoutes = (app: App, context: HttpContext, openapi: () => Document): void => {
  app.get(
    "/api/openapi.json",
    { schema: { summary: "This document", response: { 200: OpenapiDocument } } },
    async (_request, reply) => sendText(reply, JSON_TYPE, JSON.stringify(openapi())),
  );

  app.get(
    "/api/asyncapi.json",
    {
      schema: {
        summary: "The messages of the link, as AsyncAPI",
        response: { 200: AsyncapiDocument },
      },
    },
    async (request, reply) => {
      const base = new URL(context.publicUrl ?? `${request.protocol}://${request.host}`);
      const secure = base.protocol === "https:";
      const document = asyncapiDocument(context.version, base.host, secure);
      return sendText(reply, JSON_TYPE, JSON.stringify(document));
    },
  );

  for (const page of PAGES) pageRoutes(app, page);
};

const pageRoutes = (app: App, page: Page): void => {
  app.get(
    `/api/${page.folder}`,
    { schema: { summary: page.title, response: { 200: content("A page.", ["text/html"]) } } },
    async (_request, reply) => {
      reply.header("content-security-policy", page.policy).header("referrer-policy", "no-referrer");
      return sendText(reply, HTML_TYPE, page.html);
    },
  );

  app.get(
    `/api/${page.folder}/:asset`,
    {
      schema: {
        summary: `A file of /api/${page.folder}`,
        params: AssetParams,
        response: { 200: content("A script or a style.", ["text/javascript", "text/css"]) },
      },
    },
    async (request, reply) => {
      const { asset: name } = request.params;
      const asset = Object.hasOwn(page.assets, name) ? page.assets[name] : undefined;
      if (asset === undefined) throw notFound("file");
      reply.header("cache-control", ASSETS_KEPT);
      return sendText(reply, asset.type, await asset.read());
    },
  );
};

/** Past the serialiser, which would drop what an answer's schema does not name. */
const sendText = (reply: FastifyReply, type: string, text: string | Buffer): never =>
  reply.type(type).send(text) as never;

const content = (description: string, types: readonly string[]) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, { schema: Type.String() }])),
});
