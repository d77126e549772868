/**
 * What vectors/sessions.json does not cover on the agent's side: bounds, counters, times, and whole
 * conversations over a link that loses, doubles, delays and reorders.
 */
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { parsePacket, sealPacket } from "../crypto/packet.ts";
import { extractPrk } from "../crypto/secret-keys.ts";
import { deriveSessionKeys } from "../crypto/session-keys.ts";
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import { MAX_PLAINTEXT_BYTES, MAX_SEQ, SESSION_IDLE_MS, SESSION_MAX_AGE_MS } from "../spec.ts";
import { nodeSuite } from "../suites/node.ts";
import type { AgentSessionLimits, AgentVerdict } from "./agent.ts";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "./agent.ts";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "./client.ts";

const suite = nodeSuite();
const IDENTITY = { agentId: "lamp-1", agentToken: "a secret of the tests, and long enough" };

const newAgent = (limits: Partial<AgentSessionLimits> = {}, bootCount = 1): AgentSessions =>
  new AgentSessions({
    suite,
    ...IDENTITY,
    version: "1",
    bootCount,
    deviceRandom: new Uint8Array(16),
    serialNumber: null,
    limits: { ...DEFAULT_AGENT_LIMITS, ...limits },
  });

const sealAsClient = (sid: string, seq: number, plaintext = ""): string => {
  const keys = deriveSessionKeys(suite, extractPrk(suite, "lamp-1", IDENTITY.agentToken), "1", sid);
  return sealPacket(suite, keys.c2a, "1", sid, seq, asciiBytes(plaintext));
};
const partOf = (number: number): string => toBase64url(new Uint8Array(16).fill(number));

/** The sid in an agent's answer to the opening of a C. */
const sidFor = (agent: AgentSessions, c: string, now = 0): string => {
  const verdict = agent.receive(sealAsClient(c, 0), now);
  if (verdict.kind !== "answer") throw new Error(verdict.kind);
  return parsePacket(verdict.text)?.sid as string;
};
/** Opens a session and sends its first data packet. */
const hold = (agent: AgentSessions, number: number, now = 0): string => {
  const sid = sidFor(agent, partOf(number), now);
  expect(agent.receive(sealAsClient(sid, 1, "ping"), now)).toMatchObject({
    kind: "message",
    fresh: true,
  });
  return sid;
};

describe("the agent's sessions", () => {
  it("derive the keys of a session once: those made for an answer serve its first packet", () => {
    const made = vi.spyOn(suite, "aeadKey");
    const agent = newAgent();
    const spent = (text: string): [string, number] => {
      made.mockClear();
      return [agent.receive(text, 0).kind, made.mock.calls.length];
    };
    const opening = sealAsClient(partOf(1), 0);
    expect(spent(opening)).toEqual(["answer", 3]); // the client's key of C, both of C.A
    expect(spent(opening)).toEqual(["answer", 1]);
    const first = sealAsClient(agent.answered?.sid as string, 1, "ping");
    expect(spent(first)).toEqual(["message", 0]);
    expect(spent(opening)).toEqual(["answer", 1]); // the held session answers it
  });

  it("free the session answered before when they answer another opening", () => {
    const agent = newAgent();
    const answered = [1, 2].map((number) => {
      sidFor(agent, partOf(number));
      return agent.answered?.first;
    });
    expect(answered).toEqual([partOf(1), partOf(2)]);
  });

  it("store a crowd that was answered before any of it, up to twice the window", () => {
    const agent = newAgent({ epochSessions: 3 });
    const sids = [1, 2, 3, 4, 5, 6, 7].map((number) => sidFor(agent, partOf(number)));
    const kinds = sids.map((sid) => agent.receive(sealAsClient(sid, 1, "ping"), 0).kind);
    expect(kinds).toEqual([...Array(6).fill("message"), "answer"]);
    expect(agent.held()).toEqual(sids.slice(0, 6));
  });

  it("keep at most three digests for each session of a window, and two epochs", () => {
    const agent = newAgent({ epochSessions: 4 });
    let most = 0;
    for (let number = 1; number <= 40; number++) {
      const sid = sidFor(agent, partOf(number));
      agent.receive(sealAsClient(sid, 1, "ping"), 0);
      if (number % 3 === 0) agent.close(sid);
      if (number % 5 === 0) sidFor(agent, partOf(number)); // spent, if it was closed
      expect(agent.epochs.length).toBeLessThanOrEqual(2);
      most = Math.max(most, agent.epochs.map(({ spent }) => spent).join("").length / 6);
    }
    expect(most).toBeLessThanOrEqual(12);
  });

  it("erase an epoch's secret when it is over", () => {
    const agent = newAgent({ epochSessions: 1 });
    const secrets = [agent.epochs[0]?.secret];
    for (const number of [1, 2]) {
      hold(agent, number);
      secrets.push(agent.epochs[0]?.secret);
    }
    const isErased = secrets.map((secret) => secret?.every((byte) => byte === 0));
    expect(isErased).toEqual([true, false, false]);
  });

  it("end permanently: nothing is held, known or answered any more", () => {
    const agent = newAgent();
    const sid = hold(agent, 1);
    agent.end();
    expect(agent.held()).toEqual([]);
    expect(agent.epochs.map(({ secret }) => [...secret])).toEqual([Array(32).fill(0)]);
    expect(agent.answered).toBeNull();
    expect(agent.seal(sid, asciiBytes("x"))).toBeNull();
    for (const late of [sealAsClient(sid, 2, "x"), sealAsClient(partOf(2), 0)])
      expect(agent.receive(late, 3_600_000)).toEqual({ kind: "refused", reason: "rate" });
  });

  it("count what they accept, answer, miss and refuse, by reason", () => {
    const agent = newAgent();
    const sid = hold(agent, 1);
    agent.receive(sealAsClient(sid, 5, "x"), 0);
    agent.receive(sealAsClient(sid, 5, "x"), 0);
    agent.receive("not a packet", 0);
    agent.receive(sealAsClient(sid, 6, "y").replace('"v":"1"', '"v":"2"'), 0);
    agent.receive(sealAsClient(sid, 6, "y").replace('"seq":6', '"seq":7'), 0);
    expect(agent.counters).toEqual({
      accepted: 2,
      answered: 1,
      gaps: 3,
      malformed: 1,
      version: 1,
      replay: 1,
      rate: 0,
      forged: 1,
    });
  });

  const told = (verdict: AgentVerdict): string =>
    verdict.kind === "refused" ? verdict.reason : verdict.kind;

  it("limit the rate of openings, and serve first packets and held sids all the same", () => {
    const agent = newAgent({ unheldPerSecond: 10, unheldBurst: 4 });
    const open = (number: number, now: number) =>
      told(agent.receive(sealAsClient(partOf(number), 0), now));
    const sid = sidFor(agent, partOf(1)); // one of four
    expect([2, 3, 4, 5, 6].map((number) => open(number, 0))).toEqual([
      ...["answer", "answer", "answer", "rate", "rate"],
    ]);
    expect(told(agent.receive(sealAsClient(sid, 1, "ping"), 0))).toBe("message");
    expect(told(agent.receive(sealAsClient(sid, 2, "held"), 0))).toBe("message");
    expect([open(6, 99), open(6, 100), open(7, 101)]).toEqual(["rate", "answer", "rate"]);
    const later = [8, 9, 10, 11, 12].map((number) => open(number, 60_000));
    expect(later).toEqual(["answer", "answer", "answer", "answer", "rate"]);
  });

  it("take a token back for a first packet that is stored, not for one that is forged", () => {
    const agent = newAgent({ unheldPerSecond: 1, unheldBurst: 4 });
    const crowd = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => sidFor(agent, partOf(n), n * 1000));
    const stored = crowd.map((sid) => told(agent.receive(sealAsClient(sid, 1, "ping"), 9000)));
    expect(stored).toEqual(crowd.map(() => "message"));
    const sid = sidFor(agent, partOf(99), 30_000);
    const forged = sealAsClient(sid, 1, "ping").replace('"seq":1', '"seq":2');
    const kinds = Array.from({ length: 5 }, () => told(agent.receive(forged, 30_000)));
    expect(kinds).toEqual(["forged", "forged", "forged", "forged", "rate"]);
    expect(told(agent.receive(sealAsClient(partOf(98), 0), 30_000))).toBe("answer");
  });

  it("bound the derivations of A at four times that, before anything else", () => {
    const agent = newAgent({ unheldPerSecond: 10, unheldBurst: 2 });
    const hmacs = vi.spyOn(suite, "hmac");
    const derivations = (now: number): number => {
      let count = 0;
      for (let i = 0; i < 20; i++) {
        hmacs.mockClear();
        agent.receive(sealAsClient(`${partOf(1)}.${"x".repeat(22)}`, 1, "x"), now);
        // Sealing it took some, too; a look-up is one more for each epoch.
        if (hmacs.mock.calls.length > sealing) count++;
      }
      return count;
    };
    hmacs.mockClear();
    sealAsClient(`${partOf(1)}.${"x".repeat(22)}`, 1, "x");
    const sealing = hmacs.mock.calls.length;
    expect([derivations(0), derivations(50), derivations(1050)]).toEqual([8, 2, 8]);
    hmacs.mockRestore();
  });

  it("let packets of held sids wait while too many are forged, in order, bounded", () => {
    const agent = newAgent({ unheldPerSecond: 10, unheldBurst: 2, maxSessions: 3 });
    const sid = hold(agent, 1);
    const good = (seq: number) => told(agent.receive(sealAsClient(sid, seq, `${seq}`), 0));
    const forge = () =>
      told(agent.receive(sealAsClient(sid, 9, "x").replace('"seq":9', '"seq":8'), 0));
    expect([forge(), good(2), forge()]).toEqual(["forged", "message", "forged"]);
    expect([forge(), good(3), good(4), good(5)]).toEqual(["waits", "waits", "waits", "rate"]);
    expect(good(2)).toBe("replay"); // takes no cryptography
    const at = agent.nextExpiry() as number;
    expect(at).toBeGreaterThan(99);
    expect(at).toBeLessThanOrEqual(100);
    expect([agent.resume(at - 1), agent.resume(at)].map((one) => one && told(one))).toEqual([
      ...[null, "forged"],
    ]);
    expect(agent.resume(at)).toBeNull();
    const next = agent.nextExpiry() as number;
    // A good one takes no token.
    const seen = [agent.resume(next), agent.resume(next), agent.resume(next)];
    expect(seen.map((one) => one?.kind === "message" && asciiText(one.plaintext))).toEqual([
      ...["3", "4", false],
    ]);
    expect(told(agent.receive(sealAsClient(sid, 5, "5"), next))).toBe("message");
  });

  it("let no packet overtake those that wait, even when there is a token again", () => {
    const agent = newAgent({ unheldPerSecond: 10, unheldBurst: 1 });
    const sid = hold(agent, 1);
    const receive = (text: string, now: number) => told(agent.receive(text, now));
    const forged = sealAsClient(sid, 9, "x").replace('"seq":9', '"seq":8');
    expect(receive(forged, 0)).toBe("forged");
    expect(receive(sealAsClient(sid, 2, "2"), 0)).toBe("waits");
    expect(receive(sealAsClient(sid, 3, "3"), 1000)).toBe("waits");
    const seen = [agent.resume(1000), agent.resume(1000)];
    expect(seen.map((one) => one?.kind === "message" && asciiText(one.plaintext))).toEqual([
      "2",
      "3",
    ]);
  });

  it("open no more forged packets of a held sid than the bucket allows, whatever comes when", () => {
    const arrival = fc.record({ after: fc.integer({ min: 0, max: 400 }), forged: fc.boolean() });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 80 }), (arrivals) => {
        const agent = newAgent({ unheldPerSecond: 4, unheldBurst: 3, maxSessions: 5 });
        const sid = hold(agent, 1);
        const forgedAt: number[] = [];
        let [now, seq] = [0, 1];
        const heard: number[] = [];
        const take = (verdict: AgentVerdict | null, at: number): void => {
          if (verdict?.kind === "refused" && verdict.reason === "forged") forgedAt.push(at);
          if (verdict?.kind === "message") heard.push(Number(asciiText(verdict.plaintext)));
        };
        const pass = (until: number): void => {
          for (
            let due = agent.nextExpiry();
            due !== null && due <= until;
            due = agent.nextExpiry()
          ) {
            take(agent.resume(due), due);
          }
        };
        for (const { after, forged } of arrivals) {
          now += after;
          pass(now);
          seq++;
          const text = sealAsClient(sid, seq, `${seq}`);
          const sent = forged ? text.replace(`"seq":${seq}`, `"seq":${seq + 1}`) : text;
          take(agent.receive(sent, now), now);
          expect(agent.delayed.length).toBeLessThanOrEqual(5);
        }
        pass(now + 5000);
        expect(agent.delayed).toEqual([]);
        expect(heard).toEqual([...heard].sort((a, b) => a - b));
        for (const [i, at] of forgedAt.entries()) {
          const from = forgedAt.filter((other, j) => j <= i && other > at - 1000).length;
          expect(from).toBeLessThanOrEqual(3 + 4);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("never exceed their limit, whatever the order of openings", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.boolean())), (steps) => {
        const agent = newAgent({ maxSessions: 2 });
        const sids = new Map<number, string>();
        for (const [number, opens] of steps) {
          const sid = sids.get(number);
          if (opens || sid === undefined) sids.set(number, sidFor(agent, partOf(number)));
          else agent.receive(sealAsClient(sid, 1, ""), 0);
          expect(agent.held().length).toBeLessThanOrEqual(2);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("make room when they store another one, and notify the one idle for longest", () => {
    const agent = newAgent({ maxSessions: 2 });
    const first = hold(agent, 1, 0);
    const second = hold(agent, 2, 1000);
    const third = sidFor(agent, partOf(3), 2000);
    expect(agent.held()).toEqual([first, second]);
    const verdict = agent.receive(sealAsClient(third, 1, "ping"), 2000);
    expect(verdict).toMatchObject({ kind: "message", farewell: { sid: first } });
    expect(agent.held()).toEqual([second, third]);
  });

  it("make room if memory is short, one for each that is stored, but always keep one place", () => {
    let short = false;
    const agent = newAgent({ hasRoom: () => !short });
    const first = hold(agent, 1, 0);
    hold(agent, 2, 1000);
    short = true;
    const third = sidFor(agent, partOf(3), 11_000);
    const verdict = agent.receive(sealAsClient(third, 1, "ping"), 11_000);
    expect(verdict).toMatchObject({ kind: "message", farewell: { sid: first } });
    for (const sid of agent.held()) agent.close(sid);
    const last = sidFor(agent, partOf(4), 11_000);
    expect(agent.receive(sealAsClient(last, 1, "ping"), 11_000)).toMatchObject({ farewell: null });
  });

  it("tell how old they are, and when they were heard", () => {
    const agent = newAgent();
    const sid = hold(agent, 1, 1000);
    const heard = agent.receive(sealAsClient(sid, 2, "x"), 1234);
    expect(heard).toMatchObject({ kind: "message", ageMs: 234 });
    expect([agent.heardAt(sid), agent.heardAt("none")]).toEqual([1234, null]);
  });

  it("never have a second session for a held C, whoever has its part", () => {
    const agent = newAgent({ epochSessions: 1 });
    // Both parts are of epochs that may store.
    const sid = sidFor(agent, partOf(1));
    hold(agent, 2);
    const other = sidFor(agent, partOf(1));
    expect(other).not.toBe(sid);
    expect(told(agent.receive(sealAsClient(sid, 1, "ping"), 0))).toBe("message");
    const second = agent.receive(sealAsClient(other, 1, "ping"), 0);
    expect(second).toMatchObject({ kind: "answer" });
    expect(parsePacket((second as { text: string }).text)?.sid).toBe(sid);
    expect(agent.held()).toHaveLength(2);
  });

  it("let no forged first packet slow those that are held", () => {
    const agent = newAgent({ unheldPerSecond: 1, unheldBurst: 3 });
    const sid = hold(agent, 1);
    const answered = sidFor(agent, partOf(2));
    const forged = sealAsClient(answered, 1, "ping").replace('"seq":1', '"seq":2');
    const kinds = Array.from({ length: 4 }, () => told(agent.receive(forged, 0)));
    expect(kinds).toEqual(["forged", "forged", "forged", "rate"]);
    expect(told(agent.receive(sealAsClient(sid, 2, "x"), 0))).toBe("message");
  });

  it("keep the place of one that waits for its first call, or calls, while memory is short", () => {
    let short = false;
    const agent = newAgent({ hasRoom: () => !short });
    const first = hold(agent, 1, 0);
    short = true;
    const second = sidFor(agent, partOf(2), 1000);
    const ping = sealAsClient(second, 1, "ping");
    // Repeated more often than its bucket has tokens: none of these costs one.
    for (let i = 0; i < 50; i++) {
      expect(agent.receive(ping, 2000 + i)).toEqual({ kind: "refused", reason: "rate" });
    }
    expect(agent.receive(sealAsClient(first, 2, "call"), 3000)).toMatchObject({ kind: "message" });
    expect(agent.receive(ping, 3499)).toMatchObject({ kind: "refused" });
    expect(agent.receive(ping, 3500)).toMatchObject({ farewell: { sid: first } });
    // The first call of a client that has gone is not awaited for ever.
    const third = sidFor(agent, partOf(3), 12_900);
    const last = sealAsClient(third, 1, "ping");
    expect(agent.receive(last, 13_499)).toMatchObject({ kind: "refused" });
    expect(agent.receive(last, 13_500)).toMatchObject({ farewell: { sid: second } });
  });

  it("are forgotten when closed, once", () => {
    const agent = newAgent();
    const sid = hold(agent, 1, 0);
    agent.close(sid);
    agent.close(sid);
    expect(agent.held()).toEqual([]);
    expect(agent.expire(0)).toEqual([sid]);
  });

  it("report when the next one expires, and name each forgotten sid once", () => {
    const agent = newAgent({ maxSessions: 2 });
    expect(agent.nextExpiry()).toBeNull();
    const first = hold(agent, 1, 0);
    const second = hold(agent, 2, 1000);
    expect(agent.nextExpiry()).toBe(SESSION_IDLE_MS);
    const third = hold(agent, 3, 2000);
    expect(agent.expire(2000)).toEqual([first]);
    expect(agent.expire(2000)).toEqual([]);
    expect(agent.held()).toEqual([second, third]);
    expect(agent.nextExpiry()).toBe(1000 + SESSION_IDLE_MS);
    expect(agent.expire(1000 + SESSION_IDLE_MS - 1)).toEqual([]);
    expect(agent.expire(1000 + SESSION_IDLE_MS)).toEqual([second]);
    expect([agent.has(second), agent.has(third)]).toEqual([false, true]);
  });

  it("forget an expired session when its packet arrives, without a call of expire", () => {
    const agent = newAgent();
    const sid = hold(agent, 1, 0);
    expect(agent.receive(sealAsClient(sid, 2, "late"), SESSION_IDLE_MS).kind).toBe("answer");
    expect(agent.expire(SESSION_IDLE_MS)).toEqual([sid]);
  });

  it("answer the opening of an expired C with another part, without a call of expire", () => {
    const agent = newAgent();
    const sid = hold(agent, 1, 0);
    expect(sidFor(agent, partOf(1), SESSION_IDLE_MS - 1)).toBe(sid);
    expect(sidFor(agent, partOf(1), SESSION_IDLE_MS)).not.toBe(sid);
  });

  it("are forgotten 24 hours and 10 minutes after they were stored, whatever arrives", () => {
    const agent = newAgent();
    const sid = hold(agent, 1, 500);
    let [now, seq] = [500, 1];
    const ages: number[] = [];
    while (now < 500 + SESSION_MAX_AGE_MS) {
      seq++;
      const verdict = agent.receive(sealAsClient(sid, seq, "x"), now);
      if (verdict.kind === "message") ages.push(verdict.ageMs);
      expect(agent.nextExpiry()).toBe(Math.min(now + SESSION_IDLE_MS, 500 + SESSION_MAX_AGE_MS));
      now += 119_000;
    }
    expect([ages[0], ages[1], ages.at(-1)]).toEqual([0, 119_000, 731 * 119_000]);
    expect(agent.expire(499 + SESSION_MAX_AGE_MS)).toEqual([]);
    expect(agent.receive(sealAsClient(sid, seq + 1, "late"), 500 + SESSION_MAX_AGE_MS).kind).toBe(
      "answer",
    );
    expect(agent.expire(500 + SESSION_MAX_AGE_MS)).toEqual([sid]);
  });

  it("seal up to the last seq and no further", () => {
    const agent = newAgent();
    const sid = hold(agent, 1);
    agent.sessions[0]!.sent = MAX_SEQ - 1;
    expect(parsePacket(agent.seal(sid, asciiBytes("last")) ?? "")?.seq).toBe(MAX_SEQ);
    expect(agent.seal(sid, asciiBytes("one more"))).toBeNull();
  });

  it("throw for a plaintext over the limit before they use a seq", () => {
    const agent = newAgent();
    const sid = hold(agent, 1);
    expect(() => agent.seal(sid, new Uint8Array(MAX_PLAINTEXT_BYTES + 1))).toThrow();
    expect(parsePacket(agent.seal(sid, new Uint8Array(MAX_PLAINTEXT_BYTES)) ?? "")?.seq).toBe(1);
  });

  it("derive different parts for another boot count, random, serial number, secret or name", () => {
    const base = {
      suite,
      ...IDENTITY,
      version: "1" as const,
      bootCount: 1,
      deviceRandom: new Uint8Array(16),
      serialNumber: null,
      limits: DEFAULT_AGENT_LIMITS,
    };
    const secrets = [
      base,
      { ...base, bootCount: 2 },
      { ...base, bootCount: 11 },
      { ...base, deviceRandom: new Uint8Array(16).fill(1) },
      { ...base, serialNumber: "" },
      { ...base, serialNumber: "1" },
      { ...base, agentToken: `${IDENTITY.agentToken}.` },
      { ...base, agentId: "lamp-2" },
    ].map((options) => toBase64url(new AgentSessions(options).epochs[0]?.secret as Uint8Array));
    expect(new Set(secrets).size).toBe(secrets.length);
  });
});

describe("a client and an agent over an unreliable link", () => {
  // Each step takes one packet in flight and delivers, loses or doubles it, or lets time pass; or
  // restarts the agent.
  const action = fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("deliver" as const),
        at: fc.nat(),
        keep: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("lose" as const), at: fc.nat() }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("wait" as const),
        ms: fc.integer({ min: 1, max: 3000 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("call" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("sleep" as const) }) },
  );
  const window = fc.integer({ min: 1, max: 3 });
  let worlds = 0;

  it("delivers every plaintext at most once, in order, and recovers as soon as the link is reliable", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), window, (actions, epochSessions) => {
        worlds++;
        const agentId = `lamp-${worlds}`; // separate keys, so that the worlds are independent
        let boot = 1;
        let draws = 0;
        const start = () =>
          new AgentSessions({
            suite,
            ...IDENTITY,
            agentId,
            version: "1",
            bootCount: boot,
            deviceRandom: new Uint8Array(16),
            serialNumber: null,
            limits: { ...DEFAULT_AGENT_LIMITS, epochSessions },
          });
        let agent = start();
        const client = new ClientSession({
          suite,
          random: (length) => {
            draws++;
            return new Uint8Array(length).fill(draws);
          },
          ...IDENTITY,
          agentId,
          version: "1",
          timings: DEFAULT_CLIENT_TIMINGS,
        });
        let now = 0;
        let calls = 0;
        const flying: { to: "agent" | "client"; text: string }[] = [];
        const handled: number[] = [];
        const answered: number[] = [];
        const take = (effects: ReturnType<ClientSession["timeout"]>) => {
          for (const effect of effects) {
            if (effect.kind === "send") flying.push({ to: "agent", text: effect.text });
            if (effect.kind === "message") answered.push(Number(asciiText(effect.plaintext)));
          }
        };
        const deliver = (packet: { to: "agent" | "client"; text: string }) => {
          if (packet.to === "client") return take(client.receive(packet.text, now));
          const verdict = agent.receive(packet.text, now);
          if (verdict.kind === "answer") flying.push({ to: "client", text: verdict.text });
          if (verdict.kind !== "message") return;
          const plaintext = asciiText(verdict.plaintext);
          const isPing = plaintext.includes("system.ping");
          if (!isPing) handled.push(Number(plaintext));
          const reply = isPing ? '{"jsonrpc":"2.0","id":1,"result":{}}' : plaintext;
          const text = agent.seal(verdict.sid, asciiBytes(reply));
          if (text !== null) flying.push({ to: "client", text });
        };
        const call = () => {
          const text = client.seal(asciiBytes(String(calls + 1)));
          if (text === null) return;
          calls++;
          flying.push({ to: "agent", text });
        };
        const settle = () => {
          for (let turns = 0; turns < 2000 && client.state !== "open"; turns++) {
            const next = flying.shift();
            if (next !== undefined) deliver(next);
            else {
              now = Math.max(now, client.wakeAt() ?? now);
              take(client.timeout(now));
            }
          }
        };
        take(client.open(now));
        for (const one of actions) {
          if (one.do === "wait" || one.do === "sleep") {
            now += one.do === "sleep" ? SESSION_IDLE_MS : one.ms;
            take(client.timeout(now));
          } else if (one.do === "call") call();
          else if (one.do === "restart") {
            boot++;
            agent = start();
          } else if (flying.length > 0) {
            const at = one.at % flying.length;
            const packet = flying[at]!;
            if (one.do === "lose" || !one.keep) flying.splice(at, 1);
            if (one.do === "deliver") deliver(packet);
          }
        }
        const inOrder = (list: number[]) => list.every((n, i) => i === 0 || n > list[i - 1]!);
        expect(inOrder(handled)).toBe(true);
        expect(inOrder(answered)).toBe(true);

        // The link is reliable from here on. What the client sends next shows it whether its
        // session is still held.
        flying.length = 0;
        settle();
        call();
        while (flying.length > 0) deliver(flying.shift()!);
        settle();
        call();
        while (flying.length > 0) deliver(flying.shift()!);
        expect(client.state).toBe("open");
        expect(answered.at(-1)).toBe(calls);
        expect(inOrder(handled)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});
