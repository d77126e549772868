/**
 * Rules of section 2 that no search can test, because another rule precedes them or because that
 * takes too many packets: each has one check, which throws if the rule is broken. checks.test.ts
 * runs them against this repository, mutants.test.ts against the copies that lack the rule.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import { pushProof, type Suite, toHex, type Version } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { ForwardFile } from "@blindrelay/protocol/testing/forward";
import { processRecorder } from "../instruments/nonces/recorder.ts";
import type { Build } from "./build.ts";
import { readPacket } from "./packet-text.ts";
import { sha256 } from "./pushed-slots.ts";
import { World } from "./world.ts";

const FORWARD_FILE = JSON.parse(
  readFileSync(new URL("../../../protocol/vectors/forward-secrecy.json", import.meta.url), "utf8"),
) as ForwardFile;
const SECRET = "a secret of more than thirty-two characters";
const EMPTY = new Uint8Array(0);
const C = "C".repeat(22);

/** A plaintext with a length of its own. */
const text = (length: number): Uint8Array => new Uint8Array(length);

/** A client that has the secret and follows no rule. */
const insider = (build: Build, suite: Suite, agentId = "pump") => {
  const prk = build.crypto.extractPrk(suite, agentId, SECRET);
  return (sid: string, seq: number, plaintext: Uint8Array): string => {
    const keys = build.crypto.deriveSessionKeys(suite, prk, "1", sid);
    return build.crypto.sealPacket(suite, keys.c2a, "1", sid, seq, plaintext);
  };
};

const DEVICE_RANDOM = new Uint8Array(16);

const agent = (build: Build, suite: Suite, limits: object = {}) =>
  new build.session.AgentSessions({
    suite,
    agentId: "pump",
    agentToken: SECRET,
    version: "1",
    bootCount: 2,
    deviceRandom: DEVICE_RANDOM,
    serialNumber: null,
    limits: { ...build.session.DEFAULT_AGENT_LIMITS, ...limits },
  });

/** The sid that an agent assigns to this opening. */
const sidFor = (sessions: ReturnType<typeof agent>, opening: string): string => {
  const verdict = sessions.receive(opening, 0);
  assert(verdict.kind === "answer");
  return readPacket(verdict.text)?.sid ?? "";
};

export const CHECKS = {
  heldFirstIsNeverStoredTwice: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { epochSessions: 1 });
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    assert.equal(sessions.receive(seal(sid, 1, text(1)), 0).kind, "message");
    // Only the agent knows this, and knowing it would not help an attacker.
    const { crypto } = build;
    const prk = crypto.extractPrk(suite, "pump", SECRET);
    const first = crypto.deriveEpochSecret(suite, prk, 2, DEVICE_RANDOM, null);
    const present = crypto.nextEpochSecret(suite, first);
    const other = `${C}.${crypto.deriveAgentPart(suite, present, "1", C)}`;
    const verdict = sessions.receive(seal(other, 1, text(2)), 0);
    assert(verdict.kind === "answer");
    assert.equal(readPacket(verdict.text)?.sid, sid);
    assert.deepEqual(sessions.held(), [sid]);
  },

  previousEpochEnds: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { epochSessions: 1 });
    const sids = ["C", "D", "E"].map((letter) =>
      sidFor(sessions, seal(letter.repeat(22), 0, EMPTY)),
    );
    const kinds = sids.map((sid) => sessions.receive(seal(sid, 1, text(1)), 0).kind);
    assert.deepEqual(kinds, ["message", "message", "answer"]);
  },

  olderEpochIsOver: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { epochSessions: 1 });
    const late = sidFor(sessions, seal(C, 0, EMPTY));
    for (const letter of ["D", "E"]) {
      const sid = sidFor(sessions, seal(letter.repeat(22), 0, EMPTY));
      assert.equal(sessions.receive(seal(sid, 1, text(1)), 0).kind, "message");
    }
    assert.equal(sessions.receive(seal(late, 1, text(1)), 0).kind, "answer");
  },

  forgedFirstMakesNoRoom: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { maxSessions: 1 });
    const held = sidFor(sessions, seal(C, 0, EMPTY));
    sessions.receive(seal(held, 1, text(1)), 0);
    const other = sidFor(sessions, seal("D".repeat(22), 0, EMPTY));
    sessions.receive(seal(other, 2, text(1)).replace('"seq":2', '"seq":1'), 0);
    assert.deepEqual(sessions.held(), [held]);
  },

  firstGapIsReported: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite);
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    const verdict = sessions.receive(seal(sid, 4, text(1)), 0);
    assert(verdict.kind === "message" && verdict.gap === 3);
  },

  deadlineEndsTheSession: (build: Build): void => {
    const world = new World(build);
    const [device, person] = [world.devices[0], world.people[0]];
    assert(device !== undefined && person !== undefined);
    const firstOfCall = (timeoutMs: number): string | undefined => {
      person.call(device, "now", false, timeoutMs);
      return world.relay.tape.findLast(({ from }) => from === person)?.packet.first;
    };
    person.call(device, "now", false, 1_000);
    world.relay.flow();
    const before = firstOfCall(1_000);
    world.wait(1_000);
    assert.notEqual(firstOfCall(1_000), before);
  },

  closedSessionIsNotUsed: (build: Build): void => {
    const world = new World(build);
    const [device, person] = [world.devices[0], world.people[0]];
    assert(device !== undefined && person !== undefined);
    const firstOfCall = (): string | undefined => {
      person.call(device, "now", false, 30_000);
      world.relay.flow();
      return world.relay.tape.findLast(({ from }) => from === person)?.packet.first;
    };
    const before = firstOfCall();
    assert.equal(firstOfCall(), before);
    // Like an agent that needs the room.
    device.core?.agent.emit("system.close");
    world.relay.flow();
    assert.notEqual(firstOfCall(), before);
  },

  unheldIsBounded: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite);
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    assert.equal(sessions.receive(seal(sid, 1, text(1)), 0).kind, "message");
    const opening = seal("D".repeat(22), 0, EMPTY);
    let answers = 0;
    for (let i = 0; i < 1_000; i++) if (sessions.receive(opening, 0).kind === "answer") answers++;
    assert(answers <= build.session.DEFAULT_AGENT_LIMITS.unheldBurst);
    // Clients with a session are still served.
    assert.equal(sessions.receive(seal(sid, 2, text(1)), 0).kind, "message");
  },

  firstsAreBounded: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { unheldPerSecond: 1, unheldBurst: 4 });
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    const forged = seal(sid, 2, text(1)).replace('"seq":2', '"seq":1');
    for (let i = 0; i < 100; i++) sessions.receive(forged, 0);
    assert.equal(sessions.counters.forged, 4);
    // Openings are still answered.
    assert.equal(sessions.receive(seal("D".repeat(22), 0, EMPTY), 0).kind, "answer");
  },

  lookupsAreBounded: (build: Build): void => {
    let hmacs = 0;
    const plain = build.suites.nodeSuite();
    const suite: Suite = {
      ...plain,
      hmac: (key, data) => {
        hmacs++;
        return plain.hmac(key, data);
      },
    };
    const sessions = agent(build, suite, { unheldPerSecond: 1, unheldBurst: 4 });
    const packet = insider(build, plain)(`${C}.${"A".repeat(22)}`, 1, text(1));
    for (let i = 0; i < 100; i++) sessions.receive(packet, 0);
    // 16 look-ups; 4 answers, each with two derivations of keys and one of `A`.
    assert(hmacs <= 16 + 4 * 12);
  },

  forgeriesAreBounded: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite, { unheldPerSecond: 1, unheldBurst: 4 });
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    assert.equal(sessions.receive(seal(sid, 1, text(1)), 0).kind, "message");
    const forged = seal(sid, 3, text(1)).replace('"seq":3', '"seq":2');
    for (let i = 0; i < 1_000; i++) sessions.receive(forged, 0);
    for (let i = 0; i < 1_000; i++) sessions.resume(0);
    assert.equal(sessions.counters.forged, 4);
    assert(sessions.delayed.length <= build.session.DEFAULT_AGENT_LIMITS.maxSessions);
  },

  oldSessionIsForgotten: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const seal = insider(build, suite);
    const sessions = agent(build, suite);
    const sid = sidFor(sessions, seal(C, 0, EMPTY));
    let seq = 0;
    for (let now = 0; now < 25 * 3_600_000; now += 100_000) {
      seq++;
      sessions.receive(seal(sid, seq, text(1)), now);
    }
    assert.deepEqual(sessions.held(), []);
  },

  lateCallDoesNotRun: (build: Build): void => {
    const world = new World(build);
    const [device, person] = [world.devices[0], world.people[0]];
    assert(device?.core && person !== undefined);
    let ran = 0;
    const { dispatcher } = device.core;
    dispatcher.handle("door.open", () => {
      ran++;
    });
    const call = { jsonrpc: "2.0", id: 1, method: "door.open", expires: 1_000_000 };
    for (const ageMs of [1_000_000, 1_005_001, 80_000_000]) {
      dispatcher.receive(build.crypto.jsonBytes(call), "s", ageMs, () => {});
    }
    assert.equal(ran, 1);
  },

  lostEventIsSaid: (build: Build): void => {
    const world = new World(build);
    const [device, person] = [world.devices[0], world.people[0]];
    assert(device !== undefined && person !== undefined);
    person.call(device, "now", false, 30_000);
    world.behave(2_000);
    world.relay.cut(device);
    device.emit();
    const seen = world.relay.tape.length;
    world.behave(5_000);
    assert(world.relay.tape.slice(seen).some(({ from }) => from === device));
  },

  seqEnds: (build: Build): void => {
    const suite = build.suites.nodeSuite();
    const sessions = agent(build, suite);
    const client = new build.session.ClientSession({
      suite,
      random: (length) => new Uint8Array(length),
      agentId: "pump",
      agentToken: SECRET,
      version: "1",
      timings: build.session.DEFAULT_CLIENT_TIMINGS,
    });
    const sent = (effects: ReturnType<typeof client.open>): string => {
      const [effect] = effects;
      assert(effect?.kind === "send");
      return effect.text;
    };
    const answer = sessions.receive(sent(client.open(0)), 0);
    assert(answer.kind === "answer");
    sessions.receive(sent(client.receive(answer.text, 0)), 0);
    const sid = client.sid() ?? "";
    const pong = sessions.seal(sid, build.crypto.jsonBytes({ jsonrpc: "2.0", id: 1, result: {} }));
    client.receive(pong ?? "", 0);
    const [held] = sessions.sessions;
    assert(held !== undefined);
    held.sent = 2 ** 32 - 2;
    client.sent = 2 ** 32 - 2;
    for (const seal of [() => sessions.seal(sid, EMPTY), () => client.seal(EMPTY)]) {
      assert.equal(readPacket(seal() ?? "")?.seq, 2 ** 32 - 1);
      assert.equal(seal(), null);
    }
  },

  keysAreAllDifferent: (build: Build): void => {
    const { crypto } = build;
    const keys: string[] = [];
    const plain = build.suites.nodeSuite();
    const suite: Suite = {
      ...plain,
      aeadKey: (v, key) => {
        // The half that suite "2" uses.
        keys.push(crypto.toHex(key.subarray(0, 16)));
        return plain.aeadKey(v, key);
      },
    };
    for (const agentId of ["pump", "lamp"]) {
      for (const secret of [SECRET, `${SECRET}!`]) {
        const prk = crypto.extractPrk(suite, agentId, secret);
        for (const v of ["1", "2"] satisfies Version[]) {
          for (const sid of [C, `${C}.A`, `${C}.B`]) crypto.deriveSessionKeys(suite, prk, v, sid);
        }
      }
    }
    assert.equal(new Set(keys).size, 2 * 2 * 2 * 3 * 2);
  },

  aadIsComplete: (build: Build): void => {
    const seen: string[] = [];
    const plain = build.suites.nodeSuite();
    const suite: Suite = {
      ...plain,
      seal: (key, nonce, aad, plaintext) => {
        seen.push(build.crypto.asciiText(aad));
        return plain.seal(key, nonce, aad, plaintext);
      },
    };
    insider(build, suite)(`${C}.A`, 4_294_967_295, EMPTY);
    assert.deepEqual(seen, [`1|${C}.A|4294967295`]);
  },

  noncesAreAllDifferent: (build: Build): void => {
    const seen = new Set<string>();
    const plain = build.suites.nodeSuite();
    const suite: Suite = {
      ...plain,
      seal: (key, nonce, aad, plaintext) => {
        seen.add(build.crypto.toHex(nonce));
        return plain.seal(key, nonce, aad, plaintext);
      },
    };
    const seal = insider(build, suite);
    const seqs = [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 2, 2 ** 32 - 1];
    for (const bits of [7, 8, 15, 16, 23, 24]) seqs.push(2 ** bits - 1, 2 ** bits, 2 ** bits + 1);
    const different = [...new Set(seqs)];
    for (const seq of different) seal(`${C}.A`, seq, EMPTY);
    assert.equal(seen.size, different.length);
  },

  confirmNamesTheTrial: ({ push }: Build): void => {
    const storage = new MemoryStorage();
    const program = "a program";
    const port = {
      ...{ storage, maxPlaintext: 384, onTrial: false, hasWatchdog: true, room: () => 100 },
      ...{ key: null, agentId: "a", suite: nodeSuite() },
      ...{ erase: () => {}, write: () => {}, restart: () => {}, confirmed: () => {} },
      sha256: () => sha256(program),
    };
    const transfer = push.newTransfer();
    const ask = (params: object) => push.answerPush(port, transfer, params);
    const head = { size: program.length, sha256: sha256(program), version: "", seconds: 60 };
    ask(head);
    ask({ at: 0, data: Buffer.from(program).toString("base64url") });
    ask({ start: true });
    push.startPush(storage);
    port.onTrial = true;
    assert.throws(() => ask({ confirm: sha256("another").slice(0, 16) }), /not on trial/);
    ask({ confirm: sha256(program).slice(0, 16) });
  },

  /** To a caller who has the secret and all that others sent, but not the push key. */
  programsAreProven: ({ push }: Build): void => {
    const storage = new MemoryStorage();
    const key = makeToken("push", new Uint8Array(32));
    const suite = nodeSuite();
    const port = {
      ...{ key, agentId: "a", suite, storage, maxPlaintext: 384, onTrial: false },
      ...{ hasWatchdog: true, room: () => 100, erase: () => {}, write: () => {} },
      ...{ restart: () => {}, confirmed: () => {}, sha256: () => "" },
    };
    const begin = (program: string, more: object) => {
      const head = { size: program.length, sha256: sha256(program), version: "", seconds: 60 };
      // Each after a restart: nothing of a push in progress is left.
      return push.answerPush(port, push.newTransfer(), { ...head, ...more });
    };
    const of = (program: string, serial: number, agentId = "a") => ({
      ...{ serial },
      proof: pushProof(suite, key, agentId, serial, program.length, sha256(program)),
    });
    const heard = of("old", 1);
    begin("old", heard);
    begin("new", of("new", 2));
    assert.throws(() => begin("old", heard), /must be above 2/);
    assert.throws(() => begin("old", { ...heard, serial: 3 }), /not proven/);
    assert.throws(() => begin("own", { ...of("new", 3) }), /not proven/);
    assert.throws(() => begin("own", of("own", 3, "b")), /not proven/);
    begin("last", of("last", 3));
  },

  /** Every rule of suites "3" and "4" but the seed's stands in the known answers and refusals. */
  forwardConforms: ({ conformance, suites }: Build): void => {
    const newWorld = () => processRecorder().startScope();
    const suite = suites.nodeSuite();
    const has = () => true;
    const failures = conformance.checkForward(suite, nodeX25519, FORWARD_FILE, has, newWorld);
    assert.deepEqual(failures, []);
  },

  seedIsReplaced: ({ agent }: Build): void => {
    const storage = new MemoryStorage();
    const suite = nodeSuite();
    const seed = new Uint8Array(32).fill(7);
    agent.provisionBootCount(storage, suite, SECRET, seed);
    const boot = agent.raiseBootCount(storage, suite, SECRET);
    assert(boot.ok);
    assert.deepEqual(boot.seed, seed);
    const left = storage.names().map((name) => storage.read(name) ?? "");
    assert(left.length > 0 && !left.join().includes(toHex(seed)));
  },
} satisfies { readonly [name: string]: (build: Build) => void };

export type CheckName = keyof typeof CHECKS;
