/**
 * Who may call a route (section 1): every route lists the tokens that it accepts. A valid token
 * that a route does not accept gets 403; a device's token, an unknown one or an ended one gets 401.
 */
import { readToken, TOKEN_NAMES } from "@blindrelay/protocol";
import type { KeyScope } from "@blindrelay/protocol/selector";
import type { FastifyReply, FastifyRequest } from "fastify";
import { noteUse } from "../../control/access-keys.ts";
import {
  type Credential,
  type CredentialState,
  findCredential,
  HOLDER_NAMES,
  type Holder,
  isStillLive,
  type KeyFacts,
} from "../../control/credentials.ts";
import type { Db } from "../../store/open.ts";
import { findUser } from "../../store/users.ts";
import type { HttpContext } from "./context.ts";
import { HttpProblem, passingProblem } from "./problem.ts";

export interface Access {
  readonly holders: readonly Holder[];
  /** Whether a login that has not enrolled TOTP yet is sufficient. */
  readonly beforeTotp?: boolean;
  /** One of these lets an access key, or a session token made with one, in; absent: none does. */
  readonly scopes?: readonly KeyScope[];
  /** The role that the user behind the token must have. */
  readonly role?: "admin";
  /** Requests with something other than a token, which need none. */
  readonly unless?: (request: FastifyRequest) => boolean;
}

/** The user's own programs. */
export const WRITERS: Access = { holders: ["account", "login"] };
/** The programs of a user with the admin role. */
export const ADMINS: Access = { ...WRITERS, role: "admin" };
/** Writers, and clients with a session token. */
export const READERS: Access = { holders: ["account", "login", "client_session"] };
/** Agents: by those who read them, and by those who may change them. */
export const AGENT_READERS: Access = { ...READERS, scopes: ["read", "agents"] };
export const AGENT_WRITERS: Access = { ...WRITERS, scopes: ["agents"] };
export const RELEASE_READERS: Access = { ...READERS, scopes: ["read", "releases"] };
export const RELEASE_WRITERS: Access = { ...ADMINS, scopes: ["releases"] };

/** Of a request that passed `requires`. */
interface Caller {
  readonly credential: Credential;
  readonly access: Access;
  /** By the steady clock: when the store was asked. */
  readonly foundMs: number;
}

const callers = new WeakMap<FastifyRequest, Caller>();

/** The credential of a request that passed `requires`. */
export const credentialOf = (request: FastifyRequest): Credential => callerOf(request).credential;

const callerOf = (request: FastifyRequest): Caller => {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error("this route requires no credential");
  return caller;
};

/** An onRequest hook: it refuses requests before their body is read. */
export const requires = (context: HttpContext, access: Access) => {
  const hook = async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const { requestLimits } = request.server;
    if (access.unless?.(request) === true) {
      await requestLimits.countAnonymous(request);
      return;
    }
    const foundMs = context.steadyMs();
    const credential = await admitted(context, access, request).catch(async (error: unknown) => {
      await requestLimits.countAnonymous(request);
      throw error;
    });
    await requestLimits.admit(request, credential);
    callers.set(request, { credential, access, foundMs });
    await demandRole(context.store.db, access, credential);
  };
  accesses.set(hook, access);
  return hook;
};

/** What was found about a caller is asked again after this time. */
const FRESH_MS = 100;

/**
 * A preHandler hook, after `requires`: a request may wait for its turn and its body, for as long
 * as its sender likes, and whoever is shut out meanwhile is refused all the same.
 */
export const confirms =
  (context: HttpContext) =>
  async (request: FastifyRequest, _reply: FastifyReply): Promise<void> => {
    const caller = callers.get(request);
    const nowMs = context.steadyMs();
    if (caller === undefined || nowMs - caller.foundMs < FRESH_MS) return;
    const { access } = caller;
    const credential = await identify(context, access, request);
    callers.set(request, { credential, access, foundMs: nowMs });
    await demandRole(context.store.db, access, credential);
  };

/**
 * The same inside a transaction, for handlers that wait themselves: for a long body, or for a
 * password to be hashed.
 */
export const confirmIn = async (
  tx: Db,
  context: HttpContext,
  request: FastifyRequest,
): Promise<void> => {
  const { credential, access } = callerOf(request);
  if (!(await isStillLive(tx, credential, context.nowMs()))) {
    throw new HttpProblem("INVALID_TOKEN", "Invalid token");
  }
  await demandRole(tx, access, credential);
};

const demandRole = async (db: Db, { role }: Access, { userId }: Credential): Promise<void> => {
  if (role !== "admin" || (await hasAdminRole(db, userId))) return;
  throw new HttpProblem("FORBIDDEN", "This is for the admin role.");
};

const admitted = async (
  context: HttpContext,
  access: Access,
  request: FastifyRequest,
): Promise<Credential> => {
  refuseLockedOut(context, request);
  return identify(context, access, request);
};

/** The caller; throws if the route does not accept them. */
const identify = async (
  context: HttpContext,
  access: Access,
  request: FastifyRequest,
): Promise<Credential> => {
  const text = bearer(request);
  if (text === null) {
    throw new HttpProblem("AUTH_REQUIRED", `Send "Authorization: Bearer" with ${names(access)}.`);
  }
  const finding = await findCredential(context.store.db, text, context.nowMs());
  if (!("credential" in finding)) {
    throw refused(context, request, text, finding.state === "unknown", access);
  }
  const { credential } = finding;
  checkHolder(context, request, finding, access);
  if (finding.state === "expired") {
    throw new HttpProblem(
      "SESSION_EXPIRED",
      `This is ${HOLDER_NAMES[credential.holder]}, expired.`,
    );
  }
  if (finding.state === "used_up") {
    throw new HttpProblem("LIMIT_EXCEEDED", "This session token has used up its requests.");
  }
  if (credential.key !== null) await noteUse(context.store, credential.key, context.nowMs());
  return credential;
};

const accesses = new WeakMap<object, Access>();

/** What a route's hooks require, for the API documents; null if anyone may call it. */
export const accessOf = (hooks: unknown): Access | null =>
  [hooks].flat().reduce<Access | null>((found, hook) => {
    return (typeof hook === "function" ? accesses.get(hook) : undefined) ?? found;
  }, null);

const hasAdminRole = async (db: Db, userId: string): Promise<boolean> =>
  (await findUser(db, userId))?.role === "admin";

export const isAdmin = (context: HttpContext, request: FastifyRequest): Promise<boolean> =>
  hasAdminRole(context.store.db, credentialOf(request).userId);

/** Throws while the caller's address is locked out. */
export const refuseLockedOut = (context: HttpContext, request: FastifyRequest): void => {
  const address = context.addressOf(request.raw);
  const left = context.lockout.secondsLeft(address, context.steadyMs());
  if (left === 0) return;
  throw lockedOut(`Address ${address} has failed to authenticate too often`, left, address);
};

/** Throws while a name is locked for the caller's address. */
export const refuseShutName = (
  context: HttpContext,
  request: FastifyRequest,
  username: string,
): void => {
  const address = context.addressOf(request.raw);
  const left = context.usernameLockout.secondsLeft(username, address, context.steadyMs());
  if (left === 0) return;
  const what = `Logins as ${username} have failed too often, except from addresses that it has logged in from`;
  throw lockedOut(what, left, username);
};

/** Says what is locked, for how long, and who can help. `subject`: for the operator's command. */
const lockedOut = (what: string, seconds: number, subject: string): HttpProblem =>
  passingProblem(
    "LOCKED_OUT",
    `${what}: locked for ${seconds} s more. Wait, or ask the relay's operator to run: blindrelay-server unlock ${subject}`,
    seconds,
  );

/** What a failure has left of an address's attempts. */
const attemptsLeft = (left: number): string => {
  if (left === 0) return "This was the last attempt: the address is locked out.";
  return `${left} more ${left === 1 ? "failure locks" : "failures lock"} this address out.`;
};

/**
 * Counts a failed authentication, by address and by name, if one was given; returns the problem to
 * throw, which says how many attempts are left, and how long to wait if that locked either.
 */
export const failedAuthentication = (
  context: HttpContext,
  request: FastifyRequest,
  code: "INVALID_TOKEN" | "INVALID_CREDENTIALS" | "WRONG_TOKEN_KIND",
  detail: string,
  username?: string,
): HttpProblem => {
  const address = context.addressOf(request.raw);
  const nowMs = context.steadyMs();
  const retryAfter = Math.max(
    context.lockout.fail(address, nowMs),
    username === undefined ? 0 : context.usernameLockout.fail(username, address, nowMs),
  );
  const left = attemptsLeft(context.lockout.failuresLeft(address, nowMs));
  return new HttpProblem(code, `${detail.replace(/\.$/, "")}. ${left}`, {
    headers: retryAfter === 0 ? {} : { "retry-after": String(retryAfter) },
  });
};

const bearer = (request: FastifyRequest): string | null =>
  /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? "")?.[1] ?? null;

const refused = (
  context: HttpContext,
  request: FastifyRequest,
  text: string,
  counted: boolean,
  access: Access,
): HttpProblem => {
  const reading = readToken(text);
  if (counted && reading.ok && reading.kind === "session") {
    const { lockout, steadyMs } = context;
    const waitS = lockout.unknownSessions.count(context.addressOf(request.raw), steadyMs());
    if (waitS === 0) return new HttpProblem("SESSION_EXPIRED", "Invalid token");
    const what = "Too many unknown session tokens from this address";
    return passingProblem("RATE_LIMITED", what, waitS);
  }
  const foreign = reading.ok && ["e2e", "push", "agent"].includes(reading.kind);
  const code = foreign ? "WRONG_TOKEN_KIND" : "INVALID_TOKEN";
  const detail = foreign
    ? `Expected ${names(access)}, got ${TOKEN_NAMES[reading.kind]}.`
    : "Invalid token";
  return counted
    ? failedAuthentication(context, request, code, detail)
    : new HttpProblem(code, detail);
};

/** A key reaches what its scopes name, and nothing else. */
const checkScopes = ({ name, scopes }: KeyFacts, { scopes: wanted = [] }: Access): void => {
  if (scopes.some((scope) => wanted.includes(scope))) return;
  const needs =
    wanted.length === 0
      ? "This is for no access key"
      : `This needs the scope ${wanted.join(" or ")}`;
  throw new HttpProblem("FORBIDDEN", `${needs}; ${name} has ${scopes.join(", ")}.`);
};

/** A device's token is not accepted here, and counts as a failure while it is live. */
const checkHolder = (
  context: HttpContext,
  request: FastifyRequest,
  { state, credential }: Extract<CredentialState, { credential: Credential }>,
  access: Access,
): void => {
  const { holder, key } = credential;
  if (key !== null) checkScopes(key, access);
  if (holder === "key") return;
  if (!access.holders.includes(holder)) {
    const detail = `Expected ${names(access)}, got ${HOLDER_NAMES[holder]}.`;
    if (holder !== "agent" && holder !== "agent_session") {
      throw new HttpProblem("FORBIDDEN", detail);
    }
    throw state === "live"
      ? failedAuthentication(context, request, "WRONG_TOKEN_KIND", detail)
      : new HttpProblem("WRONG_TOKEN_KIND", detail);
  }
  if (credential.limited && access.beforeTotp !== true) {
    throw new HttpProblem(
      "TOTP_ENROLMENT_REQUIRED",
      "This login is good for POST /api/v1/auth/totp/enroll and /confirm only; then log in again with a code.",
    );
  }
};

const names = (access: Access): string =>
  access.holders.map((holder) => HOLDER_NAMES[holder]).join(" or ");
