/**
 * `/auth`: what the relay requires; login and logout; session tokens; a new account token (section
 * 4).
 */
import {
  LOCKOUT_FAILURES,
  LOCKOUT_S,
  LOCKOUT_WINDOW_S,
  SESSION_MAX_REQUESTS,
  SESSION_TTL_S,
} from "@blindrelay/protocol";
import {
  AuthConfig,
  LoginAnswer,
  LoginBody,
  NoContent,
  RotateAccountAnswer,
  SessionAnswer,
} from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import { logIn, logOut, rotateAccountToken } from "../../control/account.ts";
import { KNOWN, Overloaded } from "../../control/hash-queue.ts";
import { issueSession } from "../../control/issue.ts";
import { recallAddress } from "../../control/known-addresses.ts";
import { addressKey } from "../../core/limits/address-group.ts";
import {
  credentialOf,
  failedAuthentication,
  refuseLockedOut,
  refuseShutName,
  requires,
  WRITERS,
} from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { HttpProblem } from "../base/problem.ts";
import { secondsUntil, timestamp } from "../base/time.ts";
import { userAnswer } from "./account.ts";

/** The same for a wrong name, password or code, and for an account locked after wrong codes. */
const WRONG_CREDENTIALS = "Wrong user name, password or one-time code. A code is good once.";

export const authRoutes = (app: App, context: HttpContext): void => {
  const config: AuthConfig = {
    totp: context.totpRequired ? "required" : "optional",
    registration: false,
    session: { ttl: SESSION_TTL_S, max_requests: SESSION_MAX_REQUESTS },
    lockout: { failures: LOCKOUT_FAILURES, window: LOCKOUT_WINDOW_S, duration: LOCKOUT_S },
    packet_versions: ["1", "2", "3", "4"],
    version: context.version,
  };
  app.get(
    "/auth/config",
    { schema: { summary: "What this relay requires", response: { 200: AuthConfig } } },
    async () => config,
  );

  app.post(
    "/auth/login",
    {
      config: {
        problems: ["INVALID_CREDENTIALS", "LOCKED_OUT", "UNAVAILABLE"],
        storesNoText: true,
      },
      schema: {
        summary: "Log in",
        description:
          "If TOTP is required and not enrolled, the access token only permits enrolling.",
        body: LoginBody,
        response: { 200: LoginAnswer },
      },
    },
    (request) => {
      const key = `address/${addressKey(context.addressOf(request.raw))}`;
      return context.mutex
        .pass(key, () => answerLogin(context, request, request.body))
        .catch(async (error: unknown) => {
          if (error instanceof Overloaded) {
            await context.hashing.refusal();
            await app.requestLimits.pause("refusals"); // many are due at once
          }
          throw error;
        });
    },
  );

  app.post(
    "/auth/logout",
    {
      onRequest: requires(context, { holders: ["login"] }),
      schema: {
        summary: "End the access token",
        description: "The session tokens that were made with it, and their links, end too.",
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { userId, hash } = credentialOf(request);
      await logOut(context, userId, hash);
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/auth/session",
    {
      onRequest: requires(context, { ...WRITERS, scopes: ["call"] }),
      schema: {
        summary: "Make a client's session token",
        response: { 200: SessionAnswer },
      },
    },
    async (request) => {
      const nowMs = context.nowMs();
      const session = await issueSession(context.store, credentialOf(request), nowMs);
      return {
        session_token: session.token,
        expires_at: timestamp(session.expiresAtMs),
        expires_in: secondsUntil(session.expiresAtMs, nowMs),
        max_requests: SESSION_MAX_REQUESTS,
      };
    },
  );

  app.post(
    "/auth/token/rotate",
    {
      onRequest: requires(context, WRITERS),
      schema: {
        summary: "Renew the account token",
        description: "The old one, its session tokens and its live links end at once.",
        response: { 200: RotateAccountAnswer },
      },
    },
    async (request) => {
      const rotated = await rotateAccountToken(context, credentialOf(request));
      if (rotated === null) throw new HttpProblem("INVALID_TOKEN", "Invalid token");
      return { api_token: rotated.token, rotated_at: timestamp(rotated.rotatedAtMs) };
    },
  );
};

const answerLogin = async (
  context: HttpContext,
  request: FastifyRequest,
  body: LoginBody,
): Promise<LoginAnswer> => {
  refuseLockedOut(context, request);
  const { password, totp_code } = body;
  // No user name has spaces, but phones and copies add them.
  const username = body.username.trim();
  const address = context.addressOf(request.raw);
  await recallAddress(context, username, address);
  refuseShutName(context, request, username);
  const rank = context.usernameLockout.isKnown(username, address)
    ? KNOWN
    : KNOWN + 1 + context.loginOrder.of(address, context.steadyMs());
  const result = await logIn(context, username, password, totp_code, address, rank).catch(
    (error: unknown) => {
      if (error instanceof Overloaded) context.loginOrder.unheard(address, context.steadyMs());
      throw error;
    },
  );
  if (result === null) {
    context.loginOrder.wrong(address, context.steadyMs());
    throw failedAuthentication(
      context,
      request,
      "INVALID_CREDENTIALS",
      WRONG_CREDENTIALS,
      username,
    );
  }
  context.usernameLockout.succeed(username, address);
  return {
    access_token: result.login.token,
    token_type: "Bearer",
    expires_in: secondsUntil(result.login.expiresAtMs, context.nowMs()),
    user: { ...userAnswer(result.user), api_token: result.accountToken },
  };
};
