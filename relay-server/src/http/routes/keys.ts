/** `/account/keys`: access keys, which reach less than the account. */
import {
  type AccessKey,
  AccessKeyCreate,
  AccessKeyCreated,
  AccessKeyPage,
  AccessKeyParams,
  MAX_KEYS,
  NoContent,
  PAGE_LIMIT_DEFAULT,
  PageQuery,
} from "@blindrelay/protocol/schema/rest";
import { parseKeySelector, SelectorError } from "@blindrelay/protocol/selector";
import { createKey, deleteKey } from "../../control/access-keys.ts";
import { listKeys } from "../../store/access-keys.ts";
import type { AccessKeyRow } from "../../store/tables.ts";
import { credentialOf, requires, WRITERS } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { cutPage, readPosition } from "../base/pagination.ts";
import { HttpProblem, invalidBody, notFound } from "../base/problem.ts";
import { timestamp } from "../base/time.ts";

/** ISO 8601 has four digits for a year. */
const LAST_MS = Date.UTC(9999, 11, 31);
const ID = /^[0-9a-f-]{36}$/;

export const keyRoutes = (app: App, context: HttpContext): void => {
  const onRequest = requires(context, WRITERS);

  app.get(
    "/account/keys",
    {
      onRequest,
      schema: {
        summary: "Your access keys, oldest first",
        querystring: PageQuery,
        response: { 200: AccessKeyPage },
      },
    },
    async (request) => {
      const { cursor, limit = PAGE_LIMIT_DEFAULT } = request.query;
      const { userId } = credentialOf(request);
      const found = await listKeys(context.store.db, userId, readPosition(cursor), limit + 1);
      const { rows, nextCursor } = cutPage(found, limit, (row) => row.created_at);
      return { items: rows.map(keyAnswer), next_cursor: nextCursor };
    },
  );

  app.post(
    "/account/keys",
    {
      onRequest,
      config: { problems: ["CONFLICT", "QUOTA_EXCEEDED"] },
      schema: {
        summary: "Make an access key",
        description:
          "For a program or a person that is to have less than the account. A new password and a rotated account token leave it alone.",
        body: AccessKeyCreate,
        response: { 201: AccessKeyCreated },
      },
    },
    async (request, reply) => {
      const { name, scopes, where = null, expires_at = null } = request.body;
      if (new Set(scopes).size < scopes.length) {
        throw invalidBody("/scopes", "must not have duplicate items");
      }
      const expiresAtMs = expires_at === null ? null : Date.parse(expires_at);
      if (expiresAtMs !== null && !(expiresAtMs > context.nowMs())) {
        throw invalidBody("/expires_at", "must be in the future");
      }
      if ((expiresAtMs ?? 0) > LAST_MS)
        throw invalidBody("/expires_at", "must be before the year 10000");
      checkWhere(where);
      const { userId } = credentialOf(request);
      const made = await createKey(context, userId, { name, scopes, where, expiresAtMs });
      if (made === "name is taken") {
        throw new HttpProblem("CONFLICT", "A key of that name exists: remove it, or take another.");
      }
      if (made === "too many") {
        throw new HttpProblem("QUOTA_EXCEEDED", `An account has at most ${MAX_KEYS} access keys.`);
      }
      reply.code(201).header("location", `/api/v1/account/keys/${made.row.id}`);
      reply.header("cache-control", "no-store");
      return { ...keyAnswer(made.row), api_token: made.token };
    },
  );

  app.delete(
    "/account/keys/:id",
    {
      onRequest,
      schema: {
        summary: "Remove an access key",
        description: "Its session tokens and its links end at once.",
        params: AccessKeyParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { userId } = credentialOf(request);
      const { id } = request.params;
      const isDone = ID.test(id) && (await deleteKey(context, userId, id));
      if (!isDone) throw notFound("access key");
      return reply.code(204).send(null);
    },
  );
};

/** Throws the 422 for what is no selector of a key. */
const checkWhere = (where: string | null): void => {
  try {
    if (where !== null) parseKeySelector(where);
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    throw invalidBody("/where", error.message);
  }
};

const at = (ms: number | null): string | null => (ms === null ? null : timestamp(ms));

const keyAnswer = (row: AccessKeyRow): AccessKey => ({
  id: row.id,
  name: row.name,
  scopes: row.scopes.split(" ") as AccessKey["scopes"],
  where: row.selector,
  expires_at: at(row.expires_at),
  created_at: timestamp(row.created_at),
  last_used_at: at(row.last_used_at),
});
