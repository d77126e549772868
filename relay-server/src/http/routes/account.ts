/** `/account`: the user behind the credentials, and changes of password and TOTP. */
import { AccountPatch, User } from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import { changePassword, disableTotp } from "../../control/account.ts";
import { provesFactors } from "../../control/login-check.ts";
import { addressKey } from "../../core/limits/address-group.ts";
import type { UserRow } from "../../store/tables.ts";
import { findUser } from "../../store/users.ts";
import {
  credentialOf,
  failedAuthentication,
  READERS,
  refuseLockedOut,
  requires,
  WRITERS,
} from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { HttpProblem } from "../base/problem.ts";
import { timestamp } from "../base/time.ts";

export const accountRoutes = (app: App, context: HttpContext): void => {
  app.get(
    "/account",
    {
      onRequest: requires(context, READERS),
      schema: { summary: "The user behind the credentials", response: { 200: User } },
    },
    async (request) => userAnswer(await userOf(context, request)),
  );

  app.patch(
    "/account",
    {
      onRequest: requires(context, WRITERS),
      config: { problems: ["INVALID_CREDENTIALS", "CONFLICT"] },
      schema: {
        summary: "Change the password, or disable TOTP",
        description:
          "A new password invalidates the account token, all session tokens and every login except the one that requests it, and closes the links of clients. Access keys stay valid.",
        body: AccountPatch,
        response: { 200: User },
      },
    },
    async (request) => {
      const { password, totp_enabled, current_password, totp_code } = request.body;
      const user = await userOf(context, request);
      if (totp_enabled === false && context.totpRequired) {
        throw new HttpProblem("FORBIDDEN", "This relay requires two factors for every user.");
      }
      await reauthenticate(context, request, user, current_password, totp_code);
      const ends = totp_enabled === false;
      const isChanged =
        password === undefined
          ? !ends || (await disableTotp(context, user))
          : await changePassword(context, user, password, credentialOf(request).hash, ends);
      if (!isChanged) throw changedMeanwhile();
      return userAnswer(await userOf(context, request));
    },
  );
};

/** What was checked does not hold any more: a thief's request must not undo its owner's. */
export const changedMeanwhile = (): HttpProblem =>
  new HttpProblem("CONFLICT", "Password or second factor were changed just now: try again.");

/** A user as shown by REST. */
export const userAnswer = (user: UserRow): User => ({
  id: user.id,
  username: user.username,
  role: user.role,
  totp_enabled: user.totp_confirmed === 1,
  created_at: timestamp(user.created_at),
});

/** The user that a request's credential belongs to. */
export const userOf = async (context: HttpContext, request: FastifyRequest): Promise<UserRow> => {
  const user = await findUser(context.store.db, credentialOf(request).userId);
  if (user === undefined) throw new HttpProblem("INVALID_TOKEN", "Invalid token");
  return user;
};

/** Throws unless the password and, with TOTP enabled, the code are correct; failures count. */
export const reauthenticate = (
  context: HttpContext,
  request: FastifyRequest,
  user: UserRow,
  password: string,
  code: string | undefined,
): Promise<void> =>
  context.mutex.pass(`address/${addressKey(context.addressOf(request.raw))}`, async () => {
    refuseLockedOut(context, request);
    if ((await provesFactors(context, user, password, code)) !== false) return;
    throw failedAuthentication(
      context,
      request,
      "INVALID_CREDENTIALS",
      "The current password, or the one-time code that an enrolled account needs too, is wrong.",
    );
  });
