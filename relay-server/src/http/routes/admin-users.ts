/**
 * `/admin/users`: users and their roles. The first admin can be created only by
 * `blindrelay-server init`.
 */
import {
  AdminUser,
  AdminUserPage,
  IdempotencyHeaders,
  NoContent,
  PAGE_LIMIT_DEFAULT,
  PageQuery,
  UserCreate,
  UserParams,
  UserPatch,
} from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import {
  type Admin,
  administer,
  createUser,
  deleteUser,
  type UserChangeRefusal,
} from "../../control/user-admin.ts";
import type { UserRow } from "../../store/tables.ts";
import { findUser, listUsers } from "../../store/users.ts";
import { ADMINS, confirmIn, credentialOf, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { IDEMPOTENCY_PROBLEMS, idempotently } from "../base/idempotency.ts";
import { cutPage, readPosition } from "../base/pagination.ts";
import { HttpProblem, notFound } from "../base/problem.ts";
import { userAnswer } from "./account.ts";

export const adminUserRoutes = (app: App, context: HttpContext): void => {
  const onRequest = requires(context, ADMINS);
  const adminOf = (request: FastifyRequest): Admin => ({
    id: credentialOf(request).userId,
    confirm: (tx) => confirmIn(tx, context, request),
  });

  app.get(
    "/admin/users",
    {
      onRequest,
      schema: {
        summary: "All users, oldest first",
        querystring: PageQuery,
        response: { 200: AdminUserPage },
      },
    },
    async (request) => {
      const { cursor, limit = PAGE_LIMIT_DEFAULT } = request.query;
      const found = await listUsers(context.store.db, readPosition(cursor), limit + 1);
      const { rows, nextCursor } = cutPage(found, limit, (row) => row.created_at);
      return { items: rows.map(adminUser), next_cursor: nextCursor };
    },
  );

  app.post(
    "/admin/users",
    {
      onRequest,
      config: { problems: ["CONFLICT", ...IDEMPOTENCY_PROBLEMS] },
      schema: {
        summary: "Make a user",
        description: "If the relay requires TOTP, the first login only permits enrolling.",
        headers: IdempotencyHeaders,
        body: UserCreate,
        response: { 201: AdminUser },
      },
    },
    (request, reply) =>
      idempotently(context, request, reply, async () => {
        const made = await createUser(context, adminOf(request), request.body);
        if (made === null) throw new HttpProblem("CONFLICT", "That user name is taken.");
        reply.code(201).header("location", `/api/v1/admin/users/${made.id}`);
        return adminUser(made);
      }),
  );

  app.get(
    "/admin/users/:id",
    {
      onRequest,
      schema: { summary: "One user", params: UserParams, response: { 200: AdminUser } },
    },
    async (request) => {
      const user = await findUser(context.store.db, knowable(request.params.id));
      if (user === undefined) throw notFound("user");
      return adminUser(user);
    },
  );

  app.patch(
    "/admin/users/:id",
    {
      onRequest,
      config: { problems: ["CONFLICT"] },
      schema: {
        summary: "Change a user's role, disable a user, or reset password or TOTP",
        description:
          "Disabling ends all logins, tokens and links of the user and of the user's agents at once; enabling makes the tokens valid again. A new password has the same effects as a change by the owner.",
        params: UserParams,
        body: UserPatch,
        response: { 200: AdminUser },
      },
    },
    async (request) => {
      const { role, disabled, password, totp_enabled } = request.body;
      const change = { role, disabled, password, totpEnabled: totp_enabled };
      const id = knowable(request.params.id);
      const result = await administer(context, adminOf(request), id, change);
      if (typeof result === "string") throw refused(result);
      return adminUser(result);
    },
  );

  app.delete(
    "/admin/users/:id",
    {
      onRequest,
      config: { problems: ["CONFLICT"] },
      schema: {
        summary: "Remove a user",
        description: "With all agents, tokens and links, immediately and permanently.",
        params: UserParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const id = knowable(request.params.id);
      const result = await deleteUser(context, credentialOf(request).userId, id);
      if (result !== "deleted") throw refused(result);
      return reply.code(204).send(null);
    },
  );
};

/** An identifier that can be looked up in a database; any other is 404 like an unknown one. */
const knowable = (id: string): string => {
  if (/^[A-Za-z0-9-]{1,64}$/.test(id)) return id;
  throw notFound("user");
};

const refused = (refusal: UserChangeRefusal): HttpProblem =>
  refusal === "unknown"
    ? notFound("user")
    : new HttpProblem("CONFLICT", "That would leave this relay without an admin.");

const adminUser = (user: UserRow): AdminUser => ({
  ...userAnswer(user),
  disabled: user.disabled_at !== null,
});
