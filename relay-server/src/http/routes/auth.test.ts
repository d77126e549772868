/**
 * `/auth`, `/account` and permissions (sections 1 and 4), without sockets and with a clock set by
 * hand.
 */
import { makeToken, SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import { AuthConfig, LoginAnswer, SessionAnswer, User } from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, describe, expect, test } from "vitest";
import { rotateAccountToken } from "../../control/account.ts";
import { findCredential } from "../../control/credentials.ts";
import { recallAddress } from "../../control/known-addresses.ts";
import { drawToken, hashToken, Secrets } from "../../control/secrets.ts";
import { storeLookups } from "../../control/token-check.ts";
import { UsernameLockout } from "../../control/username-lockout.ts";
import { applyRetention } from "../../store/retention.ts";
import { addRequestsUsed } from "../../store/sessions.ts";
import { PASSWORD, type Rest, startRest } from "../testing/test-rest.ts";

const DAY_MS = 86_400_000;

let rest: Rest;
afterEach(() => rest.close());

const login = (body: object, address?: string) =>
  rest.call("POST", "/auth/login", { body, ...(address === undefined ? {} : { address }) });

describe("login without TOTP", () => {
  test("returns an access token and the account token", async () => {
    rest = await startRest();
    const answer = await login({ username: "admin", password: PASSWORD });
    expect(answer.statusCode).toBe(200);
    const body = answer.json();
    expect(Value.Check(LoginAnswer, body)).toBe(true);
    expect(body).toMatchObject({
      token_type: "Bearer",
      expires_in: 3600,
      user: { username: "admin", role: "admin", totp_enabled: false },
    });
    expect(body.access_token).toMatch(/^login_/);
    expect(body.user.api_token).toMatch(/^acct_/);
    expect((await rest.login()).user.api_token).toBe(body.user.api_token);
  });

  test("an unknown name, a wrong password and a missing user look alike", async () => {
    rest = await startRest();
    const answers = await Promise.all([
      login({ username: "admin", password: "wrong password" }, "192.0.2.2"),
      login({ username: "nobody", password: PASSWORD }, "192.0.2.3"),
      login({ username: "a\u0000b", password: PASSWORD }, "192.0.2.4"),
      login({ username: "admin", password: "" }, "192.0.2.5"),
    ]);
    const problems = answers.map((answer) => {
      const { request_id, ...problem } = answer.json();
      expect(request_id).toBe(answer.headers["x-request-id"]);
      return problem;
    });
    for (const answer of answers) expect(answer.statusCode).toBe(401);
    expect(new Set(problems.map((problem) => JSON.stringify(problem))).size).toBe(1);
    expect(problems[0]).toMatchObject({ status: 401, code: "INVALID_CREDENTIALS" });
  });

  test("a missing field is 422 and does not count as a failure", async () => {
    rest = await startRest();
    for (let i = 0; i < 6; i += 1) {
      expect((await login({ username: "admin" })).statusCode).toBe(422);
    }
    expect((await login({ username: "admin", password: PASSWORD })).statusCode).toBe(200);
  });
});

describe("lockout", () => {
  test("the fifth failure is 401 with 600, later ones 429 with the remaining time, valid tokens included", async () => {
    rest = await startRest();
    const account = (await rest.login()).user.api_token;
    const waits: unknown[] = [];
    for (let i = 0; i < 5; i += 1) {
      const answer = await login({ username: "admin", password: "wrong password" });
      expect(answer.statusCode).toBe(401);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      waits.push(answer.headers["retry-after"]);
    }
    expect(waits).toEqual([undefined, undefined, undefined, undefined, "600"]);
    rest.clock.nowMs += 1000;
    for (const answer of [
      await login({ username: "admin", password: PASSWORD }),
      await rest.call("GET", "/account", { token: account }),
    ]) {
      expect(answer.statusCode).toBe(429);
      expect(answer.headers["retry-after"]).toBe("599");
      expect(answer.json().code).toBe("LOCKED_OUT");
    }
    const elsewhere = { token: account, address: "192.0.2.9" };
    expect((await rest.call("GET", "/account", elsewhere)).statusCode).toBe(200);
    expect((await rest.call("GET", "/health")).statusCode).toBe(200);
    rest.clock.nowMs += 599_000;
    expect((await rest.call("GET", "/account", { token: account })).statusCode).toBe(200);
  });

  test("concurrent guesses are counted one after another", async () => {
    rest = await startRest();
    const guesses = Array.from({ length: 12 }, () =>
      login({ username: "admin", password: "guess guess" }),
    );
    const statuses = (await Promise.all(guesses)).map((answer) => answer.statusCode);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(7);
  });

  test("unknown and mistyped tokens count; tokens that were valid once do not", async () => {
    rest = await startRest();
    const { access_token, user } = await rest.login();
    const session = (await rest.call("POST", "/auth/session", { token: user.api_token })).json();
    const rotated = await rest.call("POST", "/auth/token/rotate", { token: user.api_token });
    await rest.call("POST", "/auth/logout", { token: access_token });
    for (const token of [user.api_token, access_token, session.session_token]) {
      for (let i = 0; i < 2; i += 1) {
        const answer = await rest.call("GET", "/account", { token });
        expect(answer.statusCode).toBe(401);
        expect(answer.headers["retry-after"]).toBeUndefined();
      }
    }
    const current = rotated.json().api_token;
    const mistyped = `${current.slice(0, -1)}${current.endsWith("0") ? "1" : "0"}`;
    const details: string[] = [];
    for (const token of [mistyped, "x", mistyped, drawToken("login"), mistyped]) {
      details.push((await rest.call("GET", "/account", { token })).json().detail);
    }
    expect(details).toEqual([
      "Invalid token. 4 more failures lock this address out.",
      "Invalid token. 3 more failures lock this address out.",
      "Invalid token. 2 more failures lock this address out.",
      "Invalid token. 1 more failure locks this address out.",
      "Invalid token. This was the last attempt: the address is locked out.",
    ]);
    expect((await rest.call("GET", "/account", { token: current })).statusCode).toBe(429);
  });

  test("a device's live token counts: it is not accepted here", async () => {
    rest = await startRest();
    const { access_token: token } = await rest.login();
    const agent = (await rest.call("POST", "/agents", { token, body: { name: "x" } })).json();
    for (let i = 0; i < 5; i += 1) {
      const answer = await rest.call("GET", "/account", { token: agent.api_token });
      expect([answer.statusCode, answer.json().code]).toEqual([401, "WRONG_TOKEN_KIND"]);
    }
    expect((await rest.call("GET", "/account", { token })).statusCode).toBe(429);
  });

  test("a request without credentials is 401 and does not count", async () => {
    rest = await startRest();
    for (let i = 0; i < 6; i += 1) {
      const answer = await rest.call("GET", "/account");
      expect([answer.statusCode, answer.json().code]).toEqual([401, "AUTH_REQUIRED"]);
    }
  });

  test("a hash retired more than 30 days ago is deleted, and counts again", async () => {
    rest = await startRest();
    const old = (await rest.login()).user.api_token;
    await rest.call("POST", "/auth/token/rotate", { token: old });
    const { forgetTokens } = await import("../../store/tokens.ts");
    await forgetTokens(rest.context.store.db, rest.clock.nowMs);
    await rest.call("GET", "/account", { token: old });
    expect(rest.context.lockout.failures).toBe(0);
    await forgetTokens(rest.context.store.db, rest.clock.nowMs + 1);
    await rest.call("GET", "/account", { token: old });
    expect(rest.context.lockout.failures).toBe(1);
  });
});

describe("login with TOTP", () => {
  test("requires the code, once, with one step of drift", async () => {
    rest = await startRest({ totp: true });
    const right = { username: "admin", password: PASSWORD };
    const code = rest.code();
    let last = 10;
    const address = () => {
      last += 1;
      return `192.0.2.${last}`;
    };
    expect((await login(right, address())).statusCode).toBe(401);
    expect((await login({ ...right, totp_code: code }, address())).statusCode).toBe(200);
    const again = await login({ ...right, totp_code: code }, address());
    expect(again.statusCode).toBe(401);
    const wrongPassword = await login({ username: "admin", password: "wrong password" }, address());
    expect(again.json().detail).toBe(wrongPassword.json().detail);
    rest.clock.nowMs += 60_000;
    const late = rest.code();
    rest.clock.nowMs += 30_000;
    expect((await login({ ...right, totp_code: late }, address())).statusCode).toBe(200);
    rest.clock.nowMs += 60_000;
    const tooLate = rest.code();
    rest.clock.nowMs += 60_000;
    expect((await login({ ...right, totp_code: tooLate }, address())).statusCode).toBe(401);
    rest.clock.nowMs += 30_000;
    const early = rest.code();
    rest.clock.nowMs -= 30_000;
    expect((await login({ ...right, totp_code: early }, address())).statusCode).toBe(200);
    expect((await login({ ...right, totp_code: rest.code() }, address())).statusCode).toBe(401);
  });

  test("one code sent twice at once admits one", async () => {
    rest = await startRest({ totp: true });
    const body = { username: "admin", password: PASSWORD, totp_code: rest.code() };
    const answers = await Promise.all([login(body, "192.0.2.1"), login(body, "192.0.2.2")]);
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([200, 401]);
  });

  test("wrong codes after a correct password lock the account, and the right code stays valid", async () => {
    rest = await startRest({ totp: true });
    const right = { username: "admin", password: PASSWORD };
    for (let i = 0; i < 3; i += 1) {
      await login({ ...right, totp_code: "000000" }, `192.0.2.${i}`);
    }
    const code = rest.code();
    expect((await login({ ...right, totp_code: code }, "192.0.2.7")).statusCode).toBe(401);
    rest.clock.nowMs += 30_000;
    expect((await login({ ...right, totp_code: code }, "192.0.2.8")).statusCode).toBe(200);
  });

  test("wrong passwords do not lock an account: strangers cannot keep its owner out", async () => {
    rest = await startRest({ totp: true });
    for (let i = 0; i < 8; i += 1) {
      await login(
        { username: "admin", password: "wrong password", totp_code: "000000" },
        `192.0.2.${i}`,
      );
    }
    const right = { username: "admin", password: PASSWORD, totp_code: rest.code() };
    expect((await login(right, "192.0.2.99")).statusCode).toBe(200);
  });

  test("without enrolment a login may only enrol and confirm; recovery codes work once", async () => {
    rest = await startRest({ totp: true });
    await rest.addUser("newcomer");
    const who = { username: "newcomer", password: PASSWORD };
    const first = (await login(who)).json();
    expect(first.user).toMatchObject({ api_token: null, totp_enabled: false });
    const token = first.access_token;
    for (const [method, path] of [
      ["GET", "/account"],
      ["GET", "/agents"],
      ["POST", "/auth/session"],
      ["POST", "/auth/token/rotate"],
      ["POST", "/auth/logout"],
    ] as const) {
      const answer = await rest.call(method, path, { token });
      expect([answer.statusCode, answer.json().code]).toEqual([403, "TOTP_ENROLMENT_REQUIRED"]);
    }
    const enrolled = (await rest.call("POST", "/auth/totp/enroll", { token })).json();
    expect(enrolled.otpauth_uri).toContain(enrolled.secret);
    const wrong = await rest.call("POST", "/auth/totp/confirm", {
      token,
      body: { totp_code: "000000" },
    });
    expect(wrong.statusCode).toBe(401);
    const totp_code = rest.code(enrolled.secret);
    const confirmed = await rest.call("POST", "/auth/totp/confirm", { token, body: { totp_code } });
    expect(confirmed.statusCode).toBe(200);
    const { recovery_codes } = confirmed.json();
    expect(new Set(recovery_codes).size).toBe(10);
    expect((await login({ ...who, totp_code })).statusCode).toBe(401);
    const recovery = { ...who, totp_code: recovery_codes[3] };
    const second = await login(recovery);
    expect(second.json().user).toMatchObject({ totp_enabled: true });
    expect(second.json().user.api_token).toMatch(/^acct_/);
    expect((await login(recovery)).statusCode).toBe(401);
  });

  test("replacing an enrolment requires password and code", async () => {
    rest = await startRest({ totp: true });
    const token = (await rest.login({ totp_code: rest.code() })).access_token;
    const enroll = (body?: object) =>
      rest.call("POST", "/auth/totp/enroll", body === undefined ? { token } : { token, body });
    expect((await enroll()).statusCode).toBe(422);
    expect((await enroll({ current_password: PASSWORD })).statusCode).toBe(401);
    rest.clock.nowMs += 30_000;
    const replaced = await enroll({ current_password: PASSWORD, totp_code: rest.code() });
    expect(replaced.statusCode).toBe(200);
    expect(replaced.json().secret).not.toBe(rest.totpSecret);
  });
});

describe("sessions", () => {
  test("a session token reads the user's own account and agents over REST; writing and secrets are 403", async () => {
    rest = await startRest();
    const { access_token, user } = await rest.login();
    await rest.call("POST", "/agents", { token: access_token, body: { name: "x", agent_id: "x" } });
    const made = await rest.call("POST", "/auth/session", { token: access_token });
    expect(Value.Check(SessionAnswer, made.json())).toBe(true);
    expect(made.json()).toEqual({
      session_token: expect.stringMatching(/^sess_/),
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      expires_in: 86400,
      max_requests: 10000,
    });
    const left = Date.parse(made.json().expires_at) - Date.now();
    expect(left / 1000).toBeGreaterThan(86_000);
    expect(left / 1000).toBeLessThanOrEqual(86_400);
    const token = made.json().session_token;
    for (const path of ["/account", "/agents", "/agents/x"]) {
      expect((await rest.call("GET", path, { token })).statusCode).toBe(200);
    }
    for (const [method, path] of [
      ["PATCH", "/account"],
      ["POST", "/agents"],
      ["PATCH", "/agents/x"],
      ["DELETE", "/agents/x"],
      ["POST", "/agents/x/rotate-token"],
      ["GET", "/agents/x/export"],
      ["POST", "/auth/session"],
      ["POST", "/auth/token/rotate"],
      ["POST", "/auth/logout"],
      ["POST", "/auth/totp/enroll"],
    ] as const) {
      const answer = await rest.call(method, path, { token });
      expect([answer.statusCode, answer.json().code]).toEqual([403, "FORBIDDEN"]);
      expect(answer.json().detail).toContain("a client's session token (sess_)");
    }
    expect(user.api_token).toMatch(/^acct_/);
  });

  test("an account token is not a login: logging out and enrolling require one", async () => {
    rest = await startRest();
    const token = (await rest.login()).user.api_token;
    for (const path of ["/auth/logout", "/auth/totp/enroll"]) {
      const answer = await rest.call("POST", path, { token });
      expect(answer.statusCode).toBe(403);
      expect(answer.json().detail).toBe(
        "Expected a login access token (login_), got an account token (acct_).",
      );
    }
  });

  test("agents' tokens and sessions, and end-to-end secrets, are 401 with the expected kind", async () => {
    rest = await startRest();
    const account = (await rest.login()).user.api_token;
    const agent = (
      await rest.call("POST", "/agents", { token: account, body: { name: "x", agent_id: "x" } })
    ).json();
    const admitted = await storeLookups(rest.context.store).authenticate({
      apiToken: agent.api_token,
      clientType: "firmware",
      agentId: "x",
      address: "192.0.2.1",
      nowMs: rest.clock.nowMs,
    });
    if (!admitted.ok) throw new Error(admitted.error);
    for (const [token, name] of [
      [agent.api_token, "an agent relay token (agt_)"],
      [admitted.sessionToken, "an agent's session token (sess_)"],
      [makeToken("e2e", new Uint8Array(32)), "an end-to-end secret (e2e_)"],
    ]) {
      const answer = await rest.call("GET", "/agents", { token: token as string });
      expect([answer.statusCode, answer.json().code]).toEqual([401, "WRONG_TOKEN_KIND"]);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      expect(answer.json().detail).toContain(
        `Expected an account token (acct_) or a login access token (login_) or a client's session token (sess_), got ${name}. `,
      );
      expect(answer.body).not.toContain(token);
    }
  });

  test("tokens expire: a login after an hour, a session after a day or 10,000 requests", async () => {
    rest = await startRest();
    const { access_token } = await rest.login();
    const session = (await rest.call("POST", "/auth/session", { token: access_token })).json();
    const spent = (await rest.call("POST", "/auth/session", { token: access_token })).json();
    const all = { hash: hashToken(spent.session_token), requests: SESSION_MAX_REQUESTS };
    await addRequestsUsed(rest.context.store.db, all);
    const used = await rest.call("GET", "/account", { token: spent.session_token });
    expect([used.statusCode, used.json().code]).toEqual([401, "LIMIT_EXCEEDED"]);
    rest.clock.nowMs += 3_600_000;
    const late = await rest.call("GET", "/account", { token: access_token });
    expect([late.statusCode, late.json().code]).toEqual([401, "SESSION_EXPIRED"]);
    const token = session.session_token;
    rest.clock.nowMs += DAY_MS - 3_600_000 - 1;
    expect((await rest.call("GET", "/account", { token })).statusCode).toBe(200);
    rest.clock.nowMs += 1;
    expect((await rest.call("GET", "/account", { token })).json().code).toBe("SESSION_EXPIRED");
    expect(rest.context.lockout.failures).toBe(0);
  });

  test("logging out ends the login, and only the sessions and links made with it", async () => {
    rest = await startRest();
    const { access_token, user } = await rest.login();
    const mine = (await rest.call("POST", "/auth/session", { token: access_token })).json();
    const other = (await rest.call("POST", "/auth/session", { token: user.api_token })).json();
    const answer = await rest.call("POST", "/auth/logout", { token: access_token });
    expect([answer.statusCode, answer.body]).toEqual([204, ""]);
    expect(rest.ended).toContainEqual(["end_session", hashToken(mine.session_token)]);
    expect(rest.ended).not.toContainEqual(["end_session", hashToken(other.session_token)]);
    const status = async (token: string) =>
      (await rest.call("GET", "/account", { token })).statusCode;
    expect(await status(access_token)).toBe(401);
    expect(await status(mine.session_token)).toBe(401);
    expect(await status(other.session_token)).toBe(200);
  });

  test("rotating the account token ends the old one, its sessions and links at once", async () => {
    rest = await startRest();
    const { access_token, user } = await rest.login();
    const session = (await rest.call("POST", "/auth/session", { token: user.api_token })).json();
    const rotated = await rest.call("POST", "/auth/token/rotate", { token: user.api_token });
    expect(rotated.statusCode).toBe(200);
    expect(Object.keys(rotated.json())).toEqual(["api_token", "rotated_at"]);
    expect(rest.ended).toEqual([["end_clients", user.id]]);
    const status = async (token: string) =>
      (await rest.call("GET", "/account", { token })).statusCode;
    expect(await status(user.api_token)).toBe(401);
    expect(await status(session.session_token)).toBe(401);
    expect(await status(access_token)).toBe(200);
    expect(await status(rotated.json().api_token)).toBe(200);
    expect((await rest.login()).user.api_token).toBe(rotated.json().api_token);
  });

  test("a renewal of the account token gives none once a new password has overtaken it", async () => {
    rest = await startRest();
    const { store } = rest.context;
    const { access_token: thief } = await rest.login();
    const { access_token: token } = await rest.login();
    const finding = await findCredential(store.db, thief, rest.clock.nowMs);
    if (finding.state !== "live") throw new Error("it is live");
    const body = { password: "another long one", current_password: PASSWORD };
    expect((await rest.call("PATCH", "/account", { token, body })).statusCode).toBe(200);
    expect(await rotateAccountToken(rest.context, finding.credential)).toBeNull();
  });

  test("of two renewals with one account token, the second is refused", async () => {
    rest = await startRest();
    const { api_token: token } = (await rest.login()).user;
    const rotate = () => rest.call("POST", "/auth/token/rotate", { token });
    const answers = await Promise.all([rotate(), rotate()]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 401]);
  });
});

describe("/account", () => {
  test("shows the user without its token", async () => {
    rest = await startRest();
    const { access_token, user } = await rest.login();
    const answer = (await rest.call("GET", "/account", { token: access_token })).json();
    const { api_token: _token, ...shown } = user;
    expect(answer).toEqual(shown);
    expect(Value.Check(User, answer)).toBe(true);
  });

  test("a new password requires the old one and a code, and ends what the old one gave", async () => {
    rest = await startRest({ totp: true });
    const { access_token: token, user } = await rest.login({ totp_code: rest.code() });
    rest.clock.nowMs += 30_000;
    const other = (await rest.login({ totp_code: rest.code() })).access_token;
    const change = (body: object) => rest.call("PATCH", "/account", { token, body });
    const password = "another long one";
    expect((await change({ current_password: "wrong password", password })).statusCode).toBe(401);
    expect((await change({ current_password: PASSWORD, password })).statusCode).toBe(401);
    rest.clock.nowMs += 30_000;
    const body = { current_password: PASSWORD, totp_code: rest.code(), password };
    expect((await change({ ...body, password: "short" })).statusCode).toBe(422);
    expect((await change(body)).statusCode).toBe(200);
    expect(rest.ended).toEqual([["end_clients", user.id]]);
    const status = async (text: string) =>
      (await rest.call("GET", "/account", { token: text })).statusCode;
    expect(await status(token)).toBe(200);
    expect(await status(other)).toBe(401);
    expect(await status(user.api_token)).toBe(401);
    rest.clock.nowMs += 30_000;
    const again = await login({ username: "admin", password, totp_code: rest.code() });
    expect(again.statusCode).toBe(200);
  });

  test("TOTP may be disabled if the relay does not require it", async () => {
    rest = await startRest();
    const token = (await rest.login()).access_token;
    const { secret } = (await rest.call("POST", "/auth/totp/enroll", { token })).json();
    await rest.call("POST", "/auth/totp/confirm", {
      token,
      body: { totp_code: rest.code(secret) },
    });
    rest.clock.nowMs += 30_000;
    const body = { current_password: PASSWORD, totp_code: rest.code(secret), totp_enabled: false };
    const answer = await rest.call("PATCH", "/account", { token, body });
    expect(answer.json()).toMatchObject({ totp_enabled: false });
    expect((await login({ username: "admin", password: PASSWORD })).statusCode).toBe(200);
  });
});

test("/auth/config tells a client what to expect", async () => {
  rest = await startRest({ totp: true });
  const answer = await rest.call("GET", "/auth/config");
  expect(Value.Check(AuthConfig, answer.json())).toBe(true);
  expect(answer.json()).toEqual({
    totp: "required",
    registration: false,
    session: { ttl: 86400, max_requests: 10000 },
    lockout: { failures: 5, window: 300, duration: 600 },
    packet_versions: ["1", "2", "3", "4"],
    version: "test",
  });
});

describe("addresses from which a user has logged in", () => {
  const HOME = "198.51.100.7";
  const attempt = async (address: string, password = PASSWORD) =>
    (await login({ username: "admin", password }, address)).statusCode;
  /** All that a relay has in memory about names is gone. */
  const restart = () => Object.assign(rest.context, { usernameLockout: new UsernameLockout() });
  const guessFromTen = async () => {
    for (let host = 1; host <= 10; host += 1) await attempt(`203.0.113.${host}`, "a wrong guess");
  };
  const rows = () => rest.context.store.db.selectFrom("known_addresses").selectAll().execute();

  test("are exempt from the lockout of the name, also after a restart, for 90 days", async () => {
    rest = await startRest();
    expect(await attempt(HOME)).toBe(200);
    restart();
    await guessFromTen();
    expect([await attempt(HOME), await attempt("198.51.100.8")]).toEqual([200, 429]);
    rest.clock.nowMs += 90 * DAY_MS + 1;
    restart();
    await guessFromTen();
    expect(await attempt(HOME)).toBe(429);
    await applyRetention(rest.context.store.db, rest.clock.nowMs);
    expect(await rows()).toEqual([]);
  });

  test("are kept as digests under the master key, the 20 newest of each user", async () => {
    rest = await startRest();
    for (let host = 1; host <= 22; host += 1) {
      rest.clock.nowMs += 1000;
      expect(await attempt(`198.51.100.${host}`)).toBe(200);
    }
    const kept = await rows();
    expect(kept).toHaveLength(20);
    expect(JSON.stringify(kept)).not.toContain("198.51");
    restart();
    await guessFromTen();
    expect([await attempt("198.51.100.22"), await attempt("198.51.100.2")]).toEqual([200, 429]);
    Object.assign(rest.context, { secrets: new Secrets(new Uint8Array(32)) });
    restart();
    expect(rest.context.usernameLockout.isKnown("admin", "198.51.100.22")).toBe(false);
    await recallAddress(rest.context, "admin", "198.51.100.22");
    expect(rest.context.usernameLockout.isKnown("admin", "198.51.100.22")).toBe(false);
  });
});

test("unknown session tokens, as after a restore, are refused and not counted", async () => {
  rest = await startRest();
  const unknown = () => rest.call("GET", "/account", { token: drawToken("session") });
  const answers = [];
  for (let round = 0; round < 61; round += 1) answers.push(await unknown());
  const [first] = answers;
  expect([first?.statusCode, first?.json().code]).toEqual([401, "SESSION_EXPIRED"]);
  expect(new Set(answers.slice(0, 60).map(({ statusCode }) => statusCode))).toEqual(new Set([401]));
  const last = answers.at(-1);
  expect([last?.statusCode, last?.json().code]).toEqual([429, "RATE_LIMITED"]);
  expect(Number(last?.headers["retry-after"])).toBeGreaterThan(0);
  expect(rest.context.lockout.failures).toBe(0);
  expect((await login({ username: "admin", password: PASSWORD })).statusCode).toBe(200);
  for (let round = 0; round < 5; round += 1) {
    await rest.call("GET", "/account", { token: "guess" });
  }
  expect((await unknown()).json().code).toBe("LOCKED_OUT");
});
