/**
 * The malicious relay against both SDKs, one named attack at a time and with both suites. In each,
 * the oracles check that nothing invalid is accepted, nothing throws and no nonce is reused; at the
 * end the relay is honest again and every call must be answered.
 */
import { MEDIA } from "@blindrelay/agent-sdk/memory";
import { describe, expect, test } from "vitest";
import { loadBuild, REPOSITORY } from "./build.ts";
import type { Device } from "./device.ts";
import { flipped, MUDDLED, WRONG_BASE64 } from "./moves.ts";
import { writePacket } from "./packet-text.ts";
import type { Person } from "./person.ts";
import type { Captured } from "./relay.ts";
import { World } from "./world.ts";

const build = await loadBuild(REPOSITORY);

/** A world in which ada and bob have just called one agent, and ada listens to its events. */
class Scene {
  readonly world = new World(build);
  readonly agent: Device;
  readonly ada = this.world.people[0] as Person;
  readonly bob = this.world.people[1] as Person;

  constructor(version: "1" | "2") {
    this.agent = this.world.devices.find((device) => device.version === version) as Device;
    this.ada.listen(this.agent, true);
    this.ask(this.ada);
    this.ask(this.bob);
    this.agent.emit();
    this.world.relay.flow();
    expect(this.world.sessions.counters.accepted).toBeGreaterThan(5);
  }

  /** A call that is answered. */
  ask(person: Person): void {
    const call = person.call(this.agent, "now", false, 30_000);
    this.world.behave(100);
    expect(call.outcome?.ok).toBe(true);
  }

  /** Everything recorded so far, of one side or both. */
  tape(from: "agent" | "client" | "both" = "both"): Captured[] {
    const { tape } = this.world.relay;
    return tape.filter((one) => from === "both" || one.from.isAgent === (from === "agent"));
  }

  /** The latest data packet of ada in her session, and of the agent in it. */
  latest(): readonly [call: Captured, answer: Captured] {
    const call = this.tape("client").findLast((one) => one.from === this.ada && one.packet.seq > 1);
    const answer = this.tape("agent").findLast((one) => one.to === this.ada && one.packet.seq > 1);
    if (call === undefined || answer === undefined) throw new Error("nobody talked");
    return [call, answer];
  }

  /** Delivers a text instead of a packet and expects it to be refused. */
  refused(original: Captured, text: string): void {
    const { counters } = this.world.sessions;
    const before = { ...counters };
    this.world.relay.deliver(original.to as Device | Person, text, original.enveloped);
    expect(this.world.violations).toEqual([]);
    expect(counters.accepted).toBe(before.accepted);
    expect(counters.answered).toBe(before.answered);
  }

  recovered(): void {
    expect(this.world.violations).toEqual([]);
    this.world.mustRecover();
    expect(this.world.violations).toEqual([]);
  }
}

describe.each(["1", "2"] as const)("suite %s: a relay that", (version) => {
  test("replays a whole recorded session after the agent's restart", () => {
    const scene = new Scene(version);
    const tape = scene.tape();
    for (let restarts = 0; restarts < 3; restarts++) {
      scene.agent.restart();
      const { accepted } = scene.world.sessions.counters;
      for (const packet of tape) scene.world.relay.pass(packet);
      expect(scene.world.sessions.counters.accepted).toBe(accepted);
    }
    // The replays were answered like openings, so the clients gave up their sessions.
    scene.world.relay.flow();
    expect(scene.world.sessions.counters.abandoned).toBeGreaterThan(0);
    scene.recovered();
  });

  test("replays within a session, at once and later", () => {
    const scene = new Scene(version);
    const { accepted } = scene.world.sessions.counters;
    for (const waitMs of [0, 1_000, 20_000]) {
      scene.world.wait(waitMs);
      for (const packet of scene.tape()) {
        if (packet.packet.seq > 0) scene.world.relay.pass(packet);
      }
    }
    expect(scene.world.sessions.counters.accepted).toBe(accepted);
    scene.recovered();
  });

  test("replays a session that the agent forgot after 120 s", () => {
    const scene = new Scene(version);
    const tape = scene.tape("client");
    scene.ada.listen(scene.agent, false);
    scene.world.wait(125_000);
    const { accepted } = scene.world.sessions.counters;
    for (const packet of tape) scene.world.relay.pass(packet);
    expect(scene.world.sessions.counters.accepted).toBe(accepted);
    expect(scene.agent.core?.sessions.held()).toEqual([]);
    scene.recovered();
  });

  test("reflects every packet to its sender", () => {
    const scene = new Scene(version);
    const { accepted, answered } = scene.world.sessions.counters;
    for (const packet of scene.tape()) {
      for (const enveloped of [true, false]) {
        scene.world.relay.deliver(packet.from, packet.text, enveloped);
      }
    }
    expect(scene.world.sessions.counters).toMatchObject({ accepted, answered });
    scene.recovered();
  });

  test("delivers calls in the wrong order", () => {
    const scene = new Scene(version);
    const [first, second] = [1, 2].map(() => scene.ada.call(scene.agent, "now", false, 5_000));
    const [one, two] = [...scene.world.relay.waiting];
    scene.world.relay.pass(two as Captured);
    scene.refused(one as Captured, (one as Captured).text);
    scene.world.relay.flow();
    expect(second?.outcome?.ok).toBe(true);
    expect(first?.outcome).toBe(null);
    expect(scene.agent.core?.sessions.counters.gaps).toBe(1);
    scene.recovered();
  });

  test("delivers answers and events in the wrong order", () => {
    const scene = new Scene(version);
    scene.agent.emit();
    scene.agent.emit();
    const mine = scene.world.relay.waiting.filter((one) => one.to === scene.ada);
    scene.world.relay.pass(mine[1] as Captured);
    scene.refused(mine[0] as Captured, (mine[0] as Captured).text);
    scene.recovered();
  });

  test("delivers one packet twice in one tick", () => {
    const scene = new Scene(version);
    const call = scene.ada.call(scene.agent, "slow", false, 5_000);
    const { accepted } = scene.world.sessions.counters;
    for (const side of ["to the agent", "to the client"]) {
      const [packet] = scene.world.relay.waiting;
      scene.world.relay.pass(packet as Captured);
      scene.world.relay.pass(packet as Captured);
      if (side === "to the agent") scene.world.wait(1_000);
    }
    expect(scene.world.sessions.counters.accepted).toBe(accepted + 2);
    expect(call.outcome?.ok).toBe(true);
    scene.recovered();
  });

  test("splices between sessions of one agent", () => {
    const scene = new Scene(version);
    for (const packet of scene.tape()) {
      for (const other of scene.tape()) {
        if (other.packet.sid === packet.packet.sid) continue;
        scene.refused(packet, writePacket({ ...packet.packet, sid: other.packet.sid }));
      }
    }
    scene.recovered();
  });

  test("splices between agents, also between two that share a secret", () => {
    const scene = new Scene(version);
    for (const packet of scene.tape("client")) {
      for (const device of scene.world.devices) {
        if (device !== scene.agent) scene.refused({ ...packet, to: device }, packet.text);
      }
    }
    const before = scene.tape();
    for (const device of scene.world.devices) scene.ada.call(device, "now", true, 5_000);
    scene.world.relay.flow();
    const others = scene.tape("agent").filter((one) => !before.includes(one));
    const own = before.filter((one) => one.from === scene.agent);
    for (const packet of others) {
      for (const { packet: mine } of own) {
        if (mine.first === packet.packet.first) continue;
        scene.refused(packet, writePacket({ ...packet.packet, sid: mine.sid }));
      }
    }
    scene.recovered();
  });

  test("flips any single bit", () => {
    const scene = new Scene(version);
    scene.ada.call(scene.agent, "now", false, 60_000);
    const call = scene.world.relay.waiting[0] as Captured;
    scene.agent.emit();
    const event = scene.world.relay.waiting.find((one) => one.from.isAgent) as Captured;
    for (const packet of [call, event]) {
      for (let at = 0; at < packet.packet.p.length; at++) {
        for (let bit = 0; bit < 6; bit++) {
          // Slowly; otherwise they would wait for the rate limit of forged packets.
          if (bit === 0) scene.world.wait(40);
          const p = flipped(packet.packet.p, at, bit);
          scene.refused(packet, writePacket({ ...packet.packet, p }));
        }
      }
      const { accepted } = scene.world.sessions.counters;
      scene.world.relay.pass(packet);
      expect(scene.world.sessions.counters.accepted).toBe(accepted + 1);
    }
    scene.recovered();
  });

  test("truncates, pads and rewrites base64url", () => {
    const scene = new Scene(version);
    scene.ada.call(scene.agent, "now", false, 60_000);
    scene.agent.emit();
    const untouched = [...scene.world.relay.waiting];
    for (const packet of [...untouched, ...scene.tape()]) {
      for (const rewrite of WRONG_BASE64) {
        const p = rewrite(packet.packet.p);
        if (p !== packet.packet.p) scene.refused(packet, writePacket({ ...packet.packet, p }));
      }
    }
    scene.recovered();
  });

  test("sends what only a careless parser would accept as a message", () => {
    const scene = new Scene(version);
    const [call] = scene.latest();
    const { accepted } = scene.world.sessions.counters;
    for (const muddled of MUDDLED) scene.world.relay.say(scene.agent, muddled(call.text));
    expect(scene.world.sessions.counters.accepted).toBe(accepted);
    scene.recovered();
  });

  test("rolls seq back or forward", () => {
    const scene = new Scene(version);
    for (const packet of scene.latest()) {
      const { seq } = packet.packet;
      const wrong = [0, 1, seq - 1, seq + 1, seq + 256, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53];
      for (const other of wrong) {
        if (other !== seq) scene.refused(packet, writePacket({ ...packet.packet, seq: other }));
      }
    }
    // None of it raised a mark.
    scene.ask(scene.ada);
    scene.recovered();
  });

  test("delivers the answer to an old opening again", () => {
    const scene = new Scene(version);
    const answers = scene.tape("agent").filter((one) => one.packet.seq === 0);
    scene.agent.restart();
    for (const person of scene.world.people) person.call(scene.agent, "now", true, 30_000);
    scene.world.behave(2_000);
    scene.ask(scene.ada);
    for (const answer of answers) {
      for (const person of scene.world.people) {
        scene.refused({ ...answer, to: person }, answer.text);
      }
    }
    scene.ask(scene.ada);
    scene.recovered();
  });

  test("delivers a second answer before the first ping arrives", () => {
    const scene = new Scene(version);
    scene.agent.restart();
    scene.world.wait(10_000);
    const before = scene.tape();
    const fresh = scene.tape.bind(scene);
    // The old session is found dead; a new opening is sent, and held back.
    scene.ada.call(scene.agent, "now", true, 60_000);
    const isNewOpening = (one: Captured) => one.packet.seq === 0 && !before.includes(one);
    for (let i = 0; i < 50 && !fresh("client").some(isNewOpening); i++) {
      scene.world.relay.flow();
      scene.world.wait(100);
    }
    const opening = fresh("client").find(isNewOpening) as Captured;
    scene.world.relay.pass(opening);
    const [answer] = scene.world.relay.waiting.filter(
      (one) => one.packet.first === opening.packet.first,
    );
    // Bob's sessions end the epoch, so the same opening is answered differently.
    for (let sessions = 0; sessions < 2; sessions++) {
      if (sessions > 0) scene.bob.leave();
      scene.bob.call(scene.agent, "now", true, 60_000);
      for (let i = 0; i < 50; i++) {
        for (const one of scene.world.relay.waiting) {
          if (one.packet.first !== opening.packet.first) scene.world.relay.pass(one);
        }
        scene.world.wait(100);
      }
    }
    scene.world.relay.pass(answer as Captured);
    const { abandoned } = scene.world.sessions.counters;
    scene.world.relay.pass(opening);
    const second = fresh("agent").findLast((one) => one.packet.first === opening.packet.first);
    expect(second?.packet.sid).not.toBe(answer?.packet.sid);
    scene.world.relay.pass(second as Captured);
    expect(scene.world.sessions.counters.abandoned).toBe(abandoned + 1);
    scene.recovered();
  });

  test("drops any one packet of an opening", () => {
    for (let dropped = 0; dropped < 4; dropped++) {
      const scene = new Scene(version);
      scene.agent.restart();
      scene.world.wait(100_000);
      const call = scene.bob.call(scene.agent, "now", false, 30_000);
      for (let i = 0; i < dropped; i++) {
        const [next] = scene.world.relay.waiting;
        if (next !== undefined) scene.world.relay.pass(next);
      }
      const [victim] = scene.world.relay.waiting;
      scene.world.relay.drop(victim as Captured);
      scene.world.behave(25_000);
      expect(call.outcome?.ok).toBe(true);
      scene.recovered();
    }
  });

  test("holds a packet for longer than the agent keeps its session", () => {
    const scene = new Scene(version);
    const call = scene.bob.call(scene.agent, "now", false, 10_000);
    const [held] = scene.world.relay.waiting;
    scene.world.wait(121_000);
    const { accepted } = scene.world.sessions.counters;
    scene.world.relay.pass(held as Captured);
    expect(scene.world.sessions.counters.accepted).toBe(accepted);
    expect(call.outcome).toMatchObject({ ok: false, error: { code: "TIMED_OUT" } });
    scene.recovered();
  });

  test("attacks a device whose randomness is the same after every reset", () => {
    const scene = new Scene(version);
    const opening = scene.tape("client").find((one) => one.packet.seq === 0) as Captured;
    const sids = new Set<string | undefined>();
    for (let restarts = 0; restarts < 10; restarts++) {
      scene.agent.restart();
      scene.world.relay.pass(opening);
      sids.add(scene.tape("agent").findLast((one) => one.packet.seq === 0)?.packet.sid);
    }
    expect(sids.size).toBe(10);
    scene.recovered();
  });
});

test("with one secret in two agents, neither accepts what is meant for the other", () => {
  const world = new World(build);
  const [pump, , twin] = world.devices as [Device, Device, Device];
  const [ada] = world.people as [Person, Person];
  expect(pump.agentToken).toBe(twin.agentToken);
  const calls = [pump, twin].map((device) => ada.call(device, "now", false, 30_000));
  world.behave(1_000);
  expect(calls.map((call) => call.outcome?.ok)).toEqual([true, true]);
  const { accepted, answered } = world.sessions.counters;
  for (const one of world.relay.tape) {
    for (const device of [pump, twin]) {
      if (one.to !== device && one.from !== device) {
        world.relay.deliver(device, one.text, one.enveloped);
      }
    }
  }
  expect(world.sessions.counters).toMatchObject({ accepted, answered });
  world.mustRecover();
  expect(world.violations).toEqual([]);
});

describe.each(MEDIA)("on a medium of the kind %s", (medium) => {
  test("a power cut at any point of the boot-count write never revives a session", () => {
    const world = new World(build, MEDIA.indexOf(medium));
    const [agent] = world.devices as [Device];
    const [ada] = world.people as [Person];
    for (let step = 1; step <= agent.bootSteps() + 1; step++) {
      // The interrupted write, then possibly an interrupted repair of it.
      agent.restartWithCut(step);
      if (step % 3 === 0) agent.restartWithCut(step * 2);
      const before = world.relay.tape.length;
      ada.call(agent, "now", true, 30_000);
      world.behave(1_500);
      const recorded = world.relay.tape.slice(before).filter((one) => one.to === agent);
      const { accepted } = world.sessions.counters;
      agent.restart();
      for (const packet of recorded) world.relay.pass(packet);
      expect(world.sessions.counters.accepted).toBe(accepted);
      expect(world.violations).toEqual([]);
    }
    expect(agent.tokens).toBe(0);
    world.mustRecover();
    expect(world.violations).toEqual([]);
  });
});

describe.each(["1", "2"] as const)("suite %s: a push through a relay that", (version) => {
  /**
   * Delivers packet after packet, and applies `harm` to the one with that number, until the push
   * ends.
   */
  const deliver = (scene: Scene, harmed: number, harm: (packet: Captured) => void): number => {
    const { world } = scene;
    const pushed = scene.ada.push(scene.agent, false);
    let packets = 0;
    for (let turn = 0; turn < 2_000 && pushed?.kept === null; turn++) {
      const [next] = world.relay.waiting;
      if (next === undefined) world.wait(250);
      else if (packets++ === harmed) harm(next);
      else world.relay.pass(next);
    }
    expect(pushed?.kept).not.toBe(null);
    return packets;
  };

  const HARMS: Record<string, (scene: Scene) => (packet: Captured) => void> = {
    drops: (scene) => (packet) => scene.world.relay.drop(packet),
    doubles: (scene) => (packet) => {
      scene.world.relay.pass(packet);
      scene.world.relay.pass(packet);
    },
    delays: (scene) => (packet) => {
      scene.world.relay.drop(packet);
      scene.world.behave(300);
      scene.world.relay.pass(packet);
    },
    truncates: (scene) => (packet) => {
      scene.world.relay.drop(packet);
      const text = writePacket({ ...packet.packet, p: packet.packet.p.slice(0, -4) });
      scene.world.relay.deliver(packet.to as Device | Person, text, packet.enveloped);
    },
  };

  test.each(Object.keys(HARMS))("%s any of its packets", (name) => {
    const harm = HARMS[name] as (typeof HARMS)[string];
    const clean = new Scene(version);
    const packets = deliver(clean, -1, () => undefined);
    expect(packets).toBeGreaterThan(10);
    for (let i = 0; i < packets; i++) {
      const scene = new Scene(version);
      deliver(scene, i, harm(scene));
      scene.recovered();
    }
  });

  test("replays all packets after another program was kept", () => {
    const scene = new Scene(version);
    deliver(scene, -1, () => undefined);
    const tape = scene.tape();
    deliver(scene, -1, () => undefined);
    const { running } = scene.agent.slots;
    expect(running).toContain("program 2 of ada");
    for (let restarts = 0; restarts < 2; restarts++) {
      for (const packet of tape) scene.world.relay.pass(packet);
      scene.world.behave(30_000);
      expect(scene.agent.slots.running).toBe(running);
      scene.agent.restart();
    }
    scene.recovered();
  });
});
