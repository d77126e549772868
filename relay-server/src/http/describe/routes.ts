/**
 * The routes that describe the service: two documents for programs, two pages for
 * people.
 */
import { AssetParams, AsyncapiDocument, OpenapiDocument } from "@blindrelay/protocol/schema/rest";
import { Type } from "typebox";
import { onceByName } from "../../base/once-by-name.ts";
import type { App, HttpContext } from "../base/context.ts";
import { type Kept, keptText, sendKept } from "../base/kept.ts";
import { notFound } from "../base/problem.ts";
import { httpBase } from "../base/relay-url.ts";
import { asyncapiDocument } from "./asyncapi.ts";
import type { OpenapiDocument as Document } from "./openapi.ts";
import { PAGES, type Page } from "./pages.ts";

/** The bundles change only with the program. */
const ASSETS_KEPT = "public, max-age=3600";
/** Names under which this relay is reached; forged Host headers cannot add more than this. */
const MAX_BASES = 16;
const HTML_TYPE = "text/html; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";

export const describeRoutes = (app: App, context: HttpContext, openapi: () => Document): void => {
  let document: Kept | null = null;
  const byBase = new Map<string, Kept>();
  app.get(
    "/api/openapi.json",
    { schema: { summary: "This document", response: { 200: OpenapiDocument } } },
    async (request, reply) => {
      document ??= keptText(JSON_TYPE, JSON.stringify(openapi()));
      return sendKept(request, reply, document);
    },
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
      const base = httpBase(context, request);
      let kept = byBase.get(base);
      if (kept === undefined) {
        const { host, protocol } = new URL(base);
        const described = asyncapiDocument(context.version, host, protocol === "https:");
        kept = keptText(JSON_TYPE, JSON.stringify(described));
        if (byBase.size >= MAX_BASES) byBase.clear();
        byBase.set(base, kept);
      }
      return sendKept(request, reply, kept);
    },
  );

  for (const page of PAGES) pageRoutes(app, page);
  // Relative, so that it is right behind a proxy that serves the relay under a path.
  app.get("/", { schema: { hide: true } }, async (_request, reply) => reply.redirect("console"));
};

const pageRoutes = (app: App, page: Page): void => {
  const html = keptText(HTML_TYPE, page.html);
  const read = onceByName(async (name) => {
    const asset = Object.hasOwn(page.assets, name) ? page.assets[name] : undefined;
    if (asset === undefined) throw notFound("file");
    return keptText(asset.type, await asset.read());
  });
  app.get(
    `/api/${page.folder}`,
    { schema: { summary: page.title, response: { 200: content("A page.", ["text/html"]) } } },
    async (request, reply) => {
      reply.header("content-security-policy", page.policy).header("referrer-policy", "no-referrer");
      // Only the console asks for a port.
      reply.header("permissions-policy", "serial=()");
      return sendKept(request, reply, html);
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
      const text = await read(request.params.asset);
      reply.header("cache-control", ASSETS_KEPT);
      return sendKept(request, reply, text);
    },
  );
};

const content = (description: string, types: readonly string[]) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, { schema: Type.String() }])),
});
