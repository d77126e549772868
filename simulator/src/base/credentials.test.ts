import { makeToken, SESSION_MAX_REQUESTS, type TokenKind } from "@blindrelay/protocol";
import type { AuthRequest, AuthResult, HubLookups } from "@blindrelay/relay-server/core";
import { describe, expect, test } from "vitest";
import { Directory } from "../fake-device/directory.ts";
import { Clock } from "../virtual/clock.ts";
import { ModelStore } from "../virtual/store.ts";
import { Stream } from "./random-streams.ts";

/** A store with one account and the agents "lamp" and "pump". */
interface Twin {
  account: string;
  lamp: string;
  rotateLamp(): void;
  useUp(session: string): Promise<void>;
  authenticate: HubLookups["authenticate"];
}

const inMemory = (): Twin => {
  const directory = new Directory();
  const lamp = directory.addAgent("lamp", "lamp");
  directory.addAgent("pump", "pump");
  return {
    account: directory.accountToken,
    lamp: lamp.relayToken,
    rotateLamp: () => directory.rotateAgent(lamp),
    useUp: (session) => directory.saveRequestsUsed(session, SESSION_MAX_REQUESTS),
    authenticate: (request) => directory.authenticate(request),
  };
};

const model = (): Twin => {
  const clock = new Clock();
  const ignored = (): void => undefined;
  const watcher = {
    stored: ignored,
    requestsSaved: ignored,
    told: ignored,
    failed: ignored,
    stir: ignored,
  };
  const store = new ModelStore(clock, new Stream("a test"), watcher, { latencyMs: 1 });
  const played = <T>(answer: Promise<T>): Promise<T> => {
    while (clock.nextUs() !== null) clock.step();
    return answer;
  };
  const lamp = store.issueAgent("lamp");
  store.issueAgent("pump");
  let sessionHash = "";
  return {
    account: store.accountToken("sim"),
    lamp,
    rotateLamp: () => void store.issueAgent("lamp"),
    useUp: () => played(store.addRequests(new Map([[sessionHash, SESSION_MAX_REQUESTS]]))),
    authenticate: async (request) => {
      const result = await played(store.authenticate(request));
      if (result.ok) ({ sessionHash } = result);
      return result;
    },
  };
};

const never = (kind: TokenKind): string => makeToken(kind, new Uint8Array(32).fill(7));

describe.each([
  ["a relay in memory", inMemory],
  ["a virtual relay", model],
])("%s", (_, make) => {
  const twin = make();
  const ask = async (request: Partial<AuthRequest>): Promise<AuthResult> =>
    twin.authenticate({ clientType: "client", nowMs: 1, ...request } as AuthRequest);
  const asAgent = (request: Partial<AuthRequest>, agentId = "lamp") =>
    ask({ clientType: "agent", agentId, ...request });
  const sessionOf = (result: AuthResult): string => (result.ok ? result.sessionToken : "");
  const wrongKind = (counted: boolean) => ({ ok: false, code: "WRONG_TOKEN_KIND", counted });
  const invalid = (counted: boolean) => ({ ok: false, code: "INVALID_TOKEN", counted });

  test("admits by token and by session, and counts invalid credentials as failures", async () => {
    const { account, lamp } = twin;
    const agentSession = sessionOf(await asAgent({ apiToken: lamp }));
    expect(await asAgent({ sessionToken: agentSession })).toMatchObject({ ok: true });
    const clientSession = sessionOf(await ask({ apiToken: account }));
    expect(await ask({ sessionToken: clientSession })).toMatchObject({ ok: true });

    expect(await ask({ apiToken: lamp })).toMatchObject(wrongKind(true));
    expect(await ask({ apiToken: never("agent") })).toMatchObject(wrongKind(true));
    expect(await ask({ sessionToken: never("session") })).toMatchObject(invalid(true));
    expect(await ask({ sessionToken: agentSession })).toMatchObject({
      ...wrongKind(true),
      error: "Expected a client's session token (sess_), got an agent's session token (sess_)",
    });
    expect(await asAgent({ sessionToken: clientSession })).toMatchObject(wrongKind(true));
    expect(await asAgent({ apiToken: lamp }, "pump")).toMatchObject(invalid(true));
    expect(await asAgent({ sessionToken: agentSession }, "pump")).toMatchObject(invalid(true));
    const mistyped = `${never("account").slice(0, -1)}_`;
    expect(await asAgent({ apiToken: mistyped })).toMatchObject(invalid(true));
  });

  test("does not count credentials that were valid once", async () => {
    const { account, lamp } = twin;
    const agentSession = sessionOf(await asAgent({ apiToken: lamp }));
    twin.rotateLamp();
    expect(await asAgent({ apiToken: lamp })).toMatchObject(invalid(false));
    expect(await asAgent({ sessionToken: agentSession })).toMatchObject(invalid(false));
    expect(await ask({ apiToken: lamp })).toMatchObject(wrongKind(false));

    const clientSession = sessionOf(await ask({ apiToken: account }));
    await twin.useUp(clientSession);
    const usedUp = { ok: false, code: "LIMIT_EXCEEDED", counted: false };
    expect(await ask({ sessionToken: clientSession })).toMatchObject(usedUp);
  });
});
