/**
 * What vectors/sessions.json does not cover on the client's side: its own times, limits and misuse.
 */
import { describe, expect, it } from "vitest";
import { parsePacket, sealPacket } from "../crypto/packet.ts";
import { extractPrk } from "../crypto/secret-keys.ts";
import { deriveSessionKeys } from "../crypto/session-keys.ts";
import { asciiBytes } from "../encoding/bytes.ts";
import {
  MAX_PLAINTEXT_BYTES,
  MAX_SEQ,
  REOPEN_DELAY_MS,
  SESSION_RENEW_MS,
  SESSION_RENEW_PACKETS,
} from "../spec.ts";
import { nodeSuite } from "../suites/node.ts";
import type { ClientEffect } from "./client.ts";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "./client.ts";

const suite = nodeSuite();
const IDENTITY = { agentId: "lamp-1", agentToken: "a secret of the tests, and long enough" };
const PONG = '{"jsonrpc":"2.0","id":1,"result":{}}';
const A1 = "1".repeat(22);
const A2 = "2".repeat(22);

const TIMINGS = { resendMs: 1000, maxResendMs: 4000, confirmMs: 5000 };

const newClient = (delayBytes = 0, timings = TIMINGS): ClientSession => {
  let draws = 0;
  return new ClientSession({
    suite,
    random: (length) => {
      if (length !== 16) return new Uint8Array(length).fill(delayBytes);
      draws++;
      return new Uint8Array(16).fill(draws);
    },
    ...IDENTITY,
    version: "1",
    timings,
  });
};
const sealAsAgent = (sid: string, seq: number, plaintext: string): string => {
  const keys = deriveSessionKeys(suite, extractPrk(suite, "lamp-1", IDENTITY.agentToken), "1", sid);
  return sealPacket(suite, keys.a2c, "1", sid, seq, asciiBytes(plaintext));
};
const sent = (effects: ClientEffect[]): string => {
  const [effect] = effects;
  if (effect?.kind !== "send") throw new Error(`nothing sent: ${JSON.stringify(effects)}`);
  return effect.text;
};
/** A client with a session that has been open since `now`. */
const opened = (now = 0): { client: ClientSession; sid: string } => {
  const client = newClient();
  client.open(now);
  const sid = `${client.first()}.${A1}`;
  client.receive(sealAsAgent(sid, 0, ""), now);
  expect(client.receive(sealAsAgent(sid, 1, PONG), now)).toEqual([{ kind: "opened", sid, gap: 0 }]);
  return { client, sid };
};

describe("an opening", () => {
  it("is sent again byte for byte after 1, 2, 4, 4 seconds, without end", () => {
    const client = newClient(0);
    const text = sent(client.open(0));
    expect(client.outstanding()).toBe(text);
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const at = client.wakeAt() as number;
      expect(client.timeout(at - 1)).toEqual([]);
      expect(sent(client.timeout(at))).toBe(text);
      expect(client.timeout(at)).toEqual([]);
      times.push(at);
    }
    expect(times).toEqual([1000, 3000, 7000, 11000, 15000]);
    expect(client.state).toBe("opening");
  });

  it.each([
    [0x80, 0x8080 / 0x10000],
    [0xff, 0xffff / 0x10000],
  ])("is repeated later by a half, times a random fraction (bytes of %i)", (byte, fraction) => {
    const client = newClient(byte);
    client.open(0);
    const times = [0, 1, 2].map(() => {
      const at = client.wakeAt() as number;
      client.timeout(at);
      return at;
    });
    expect(times).toEqual([1000, 3000, 7000].map((ms) => ms * (1 + fraction / 2)));
  });

  it("is repeated up to 15 s apart, with that half up to 22.5 s, by default", () => {
    for (const [byte, ms] of [
      [0, 15_000],
      [0xff, 22_500],
    ] as const) {
      const client = newClient(byte, DEFAULT_CLIENT_TIMINGS);
      client.open(0);
      let now = 0;
      for (let i = 0; i < 8; i++) {
        now = client.wakeAt() as number;
        client.timeout(now);
      }
      expect(Math.round((client.wakeAt() as number) - now)).toBe(ms);
    }
  });

  it("uses a C of 22 characters that no other opening has", () => {
    const client = newClient();
    const firsts = [1, 2, 3].map(() => {
      const packet = parsePacket(sent(client.open(0)));
      client.giveUp();
      return packet?.first;
    });
    expect(new Set(firsts).size).toBe(3);
    expect(firsts[0]).toHaveLength(22);
  });
});

describe("the first ping", () => {
  it("is sent again byte for byte, and silence ends C after 5 seconds", () => {
    const client = newClient();
    client.open(0);
    const first = client.first();
    const sid = `${first}.${A1}`;
    const ping = sent(client.receive(sealAsAgent(sid, 0, ""), 100));
    expect(parsePacket(ping)).toMatchObject({ sid, seq: 1 });
    expect(client.sid()).toBe(sid);
    expect(client.wakeAt()).toBe(1100);
    expect(sent(client.timeout(1100))).toBe(ping);
    expect(sent(client.timeout(3100))).toBe(ping);
    expect(client.wakeAt()).toBe(5100);
    expect(client.timeout(5100)).toEqual([{ kind: "abandoned", reason: "silence" }]);
    expect([client.state, client.first(), client.sid(), client.outstanding()]).toEqual([
      "waiting",
      null,
      null,
      null,
    ]);
  });

  it("accepts a pong with a seq that shows a loss, and reports the loss", () => {
    const client = newClient();
    client.open(0);
    const sid = `${client.first()}.${A1}`;
    client.receive(sealAsAgent(sid, 0, ""), 0);
    expect(client.receive(sealAsAgent(sid, 4, PONG), 0)).toEqual([{ kind: "opened", sid, gap: 3 }]);
  });

  it.each([
    ["an event", '{"jsonrpc":"2.0","method":"x"}'],
    ["a request with its id", '{"jsonrpc":"2.0","id":1,"method":"x"}'],
    ["another answer", '{"jsonrpc":"2.0","id":2,"result":{}}'],
    ["its id as a text", '{"jsonrpc":"2.0","id":"1","result":{}}'],
    ["no JSON", "hello"],
  ])("is not answered by %s", (_what, plaintext) => {
    const client = newClient();
    client.open(0);
    const sid = `${client.first()}.${A1}`;
    client.receive(sealAsAgent(sid, 0, ""), 0);
    const [effect] = client.receive(sealAsAgent(sid, 1, plaintext), 0);
    expect([effect?.kind, client.state]).toEqual(["message", "confirming"]);
  });
});

describe("after a second answer", () => {
  it.each([
    [0x00, 0],
    [0x80, 0x8080 / 0x10000],
    [0xff, 0xffff / 0x10000],
  ])("waits, with random bytes of %i, for %f of 500 ms", (byte, fraction) => {
    const client = newClient(byte);
    client.open(0);
    const c = client.first();
    client.receive(sealAsAgent(`${c}.${A1}`, 0, ""), 0);
    client.receive(sealAsAgent(`${c}.${A2}`, 0, ""), 1000);
    const wake = client.wakeAt() as number;
    expect(wake).toBe(1000 + fraction * REOPEN_DELAY_MS);
    if (wake > 1000) expect(client.timeout(1000)).toEqual([]);
    expect(parsePacket(sent(client.timeout(Math.ceil(wake))))?.first).not.toBe(c);
    expect(client.state).toBe("opening");
  });
});

describe("an open session", () => {
  it("is due for renewal after 24 hours or 10,000 packets", () => {
    const { client } = opened(50);
    expect(client.renewalDue(50 + SESSION_RENEW_MS - 1)).toBe(false);
    expect(client.renewalDue(50 + SESSION_RENEW_MS)).toBe(true);
    client.sent = SESSION_RENEW_PACKETS - 1;
    expect(client.renewalDue(50)).toBe(false);
    client.seal(asciiBytes("x"));
    expect(client.renewalDue(50)).toBe(true);
    client.giveUp();
    expect(client.renewalDue(50 + SESSION_RENEW_MS)).toBe(false);
  });

  it("asks for no wake-up and sends nothing by itself", () => {
    const { client } = opened();
    expect(client.wakeAt()).toBeNull();
    expect(client.outstanding()).toBeNull();
    expect(client.timeout(1e9)).toEqual([]);
  });

  it("seals up to the last seq and no further", () => {
    const { client } = opened();
    client.sent = MAX_SEQ - 1;
    expect(parsePacket(client.seal(asciiBytes("last")) ?? "")?.seq).toBe(MAX_SEQ);
    expect(client.seal(asciiBytes("one more"))).toBeNull();
  });

  it("throws for a plaintext over the limit before it uses a seq", () => {
    const { client } = opened();
    expect(() => client.seal(new Uint8Array(MAX_PLAINTEXT_BYTES + 1))).toThrow();
    expect(parsePacket(client.seal(new Uint8Array(MAX_PLAINTEXT_BYTES)) ?? "")?.seq).toBe(2);
  });
});

describe("misuse and idleness", () => {
  it("opens only from idle", () => {
    const client = newClient();
    client.open(0);
    expect(() => client.open(0)).toThrow("open in state opening");
    expect(() => opened().client.open(0)).toThrow("open in state open");
  });

  it("gives up in any state, even twice", () => {
    const client = newClient();
    client.giveUp();
    client.open(0);
    client.giveUp();
    client.giveUp();
    expect([client.state, client.wakeAt(), client.first()]).toEqual(["idle", null, null]);
  });

  it("ignores a timeout when nothing is awaited", () => {
    expect(newClient().timeout(1e9)).toEqual([]);
  });

  it("refuses packets while idle without cryptography", () => {
    expect(newClient().receive(sealAsAgent(`${"C".repeat(22)}.${A1}`, 0, ""), 0)).toEqual([
      { kind: "refused", reason: "foreign" },
    ]);
  });
});
