/**
 * Everything that can happen on a stage, as a table: what people and devices do by themselves, and
 * what the relay does as an attacker. A move takes three numbers, which choose among what exists,
 * so that any list of moves is valid on any stage and shrinks well.
 */
import { encodeAgentStatus, encodeError } from "@blindrelay/protocol/wire";
import { type PacketText, writePacket } from "./packet-text.ts";
import type { Captured, Party } from "./relay.ts";
import type { Stage } from "./stage.ts";

export interface Move {
  readonly does: string;
  /** How often the search plays it, relative to the others. */
  readonly weight: number;
  play(stage: Stage, a: number, b: number, c: number): void;
}

/**
 * Every second choice is among the latest eight, whose sessions are alive; the others are among
 * all.
 */
const pick = <T>(list: readonly T[], n: number): T | undefined => {
  if (list.length === 0) return undefined;
  const recent = Math.min(8, list.length);
  return n % 2 === 0 ? list[list.length - 1 - ((n >> 1) % recent)] : list[(n >> 1) % list.length];
};

const among = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;

const device = (stage: Stage, n: number) => among(stage.devices, n);
const person = (stage: Stage, n: number) => among(stage.people, n);

/**
 * A captured packet in a different spelling, to the original's recipient, in its form or the other.
 */
const forge = (
  stage: Stage,
  original: Captured | undefined,
  change: Partial<PacketText>,
  c = 0,
) => {
  if (original === undefined || original.to === null) return;
  const text = writePacket({ ...original.packet, ...change });
  stage.relay.deliver(original.to, text, original.enveloped !== (c % 5 === 0));
};

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Flips one bit of one character. */
export const flipped = (text: string, at: number, bit: number): string => {
  const i = at % text.length;
  const value = ALPHABET.indexOf(text.charAt(i));
  return text.slice(0, i) + ALPHABET.charAt((value ^ (1 << (bit % 6))) & 63) + text.slice(i + 1);
};

/** Every invalid way to write the same or nearly the same bytes. */
export const WRONG_BASE64: readonly ((p: string) => string)[] = [
  (p) => p.slice(0, -1),
  (p) => p.slice(0, -4),
  (p) => p.slice(0, 21),
  () => "",
  (p) => `${p}=`,
  (p) => `${p}==`,
  (p) => `${p}A`,
  (p) => `${p}AAAA`,
  (p) => `AAAA${p}`,
  (p) => ` ${p}`,
  (p) => `${p.slice(0, 3)}\\n${p.slice(3)}`,
  (p) => p.replaceAll("-", "+").replaceAll("_", "/"),
  // The unused low bits of the last character.
  (p) => p.slice(0, -1) + ALPHABET.charAt((ALPHABET.indexOf(p.slice(-1)) + 1) & 63),
];

/**
 * Texts that are not packets, or that another parser might read as the packet that they are made
 * from.
 */
const MALFORMED: readonly ((packet: PacketText) => string)[] = [
  () => "",
  () => "{",
  () => "null",
  () => "[]",
  () => '{"__proto__":{"v":"1"}}',
  () => "[".repeat(3000),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":$1.0'),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":$1e0'),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":0$1'),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":"$1"'),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":-$1'),
  (packet) => writePacket(packet).replace(/"seq":(\d+)/, '"seq":4294967296$1'),
  (packet) => writePacket(packet).replace(/"v":"(\d)"/, '"v":$1'),
  (packet) => writePacket({ ...packet, v: "3" }),
  (packet) => writePacket({ ...packet, v: packet.v === "1" ? "2" : "1" }),
  (packet) => writePacket({ ...packet, sid: packet.first, seq: packet.seq + 1 }),
  (packet) => writePacket({ ...packet, sid: `${packet.sid}.` }),
  (packet) => writePacket({ ...packet, sid: `${packet.sid}.${packet.first}` }),
  (packet) => writePacket({ ...packet, sid: packet.sid.toLowerCase() }),
  (packet) => writePacket({ ...packet, sid: ` ${packet.sid}` }),
  (packet) => writePacket(packet).replace("{", '{"type":"relay",'),
  (packet) => `${writePacket(packet)} `.repeat(2),
];

/**
 * Messages to an agent around a packet that are invalid, or that careless parsers read differently.
 */
export const MUDDLED: readonly ((packet: string) => string)[] = [
  () => "",
  () => "{",
  () => "null",
  () => "[".repeat(3_000),
  () => '{"a":'.repeat(600),
  () => `{"type":"relay","payload":${"[".repeat(2_000)}`,
  () => '{"type":"ping"}{"type":"ping"}',
  () => "{'type':'ping',}",
  () => '{"type":"__proto__"}',
  () => '{"type":["relay"],"payload":{}}',
  () => '{"type":"relay"}',
  () => '{"type":"relay","payload":7,"request_id":{}}',
  () => '{"type":"error","code":{"toString":1},"sid":[]}',
  () => '{"type":"auth_response","status":"authenticated","session_token":1}',
  () => `{"type":"ping","x":"${"x".repeat(70_000)}"}`,
  () => '{"type":"ping","x":1e999,"y":-0,"\u0000":"\ud800"}',
  (packet) => packet.replace("{", '{"__proto__":{"type":"ping"},"constructor":1,'),
  (packet) => packet.replace("{", '{"seq":0,"sid":"","p":"",'),
  (packet) => packet.replace(/}$/, ',"seq":4294967295}'),
  (packet) => `{"type":"relay","payload":"","payload":${JSON.stringify(packet)}}`,
  (packet) => `{"type":"relay","payload":${packet}}`,
  (packet) => `{"type":"relay","payload":{"v":"9"},"payload":${packet}}`,
  (packet) => `{"type":"relay","p\\u0061yload":${packet},"payload":"{}"}`,
  (packet) => `{"type":"relay","x":"{\\"payload\\":{}","payload":[${packet}]}`,
  (packet) => `{"payload":${JSON.stringify(packet)},"__proto__":{"type":"relay"}}`,
  (packet) => JSON.stringify({ type: "relay", payload: packet, request_id: "r".repeat(900) }),
  (packet) => JSON.stringify({ type: "relay", payload: packet, signature: "A".repeat(43) }),
];

/** What a relay may claim about a packet, true or not. */
const LIES = [
  "UNKNOWN_SESSION",
  "SID_IN_USE",
  "AGENT_OFFLINE",
  "RATE_LIMITED",
  "SLOW_CONSUMER",
  "UNAVAILABLE",
  "NOT_A_CODE",
];

/** The packets of one session in one direction, by the packet that named it. */
const sessionOf = (stage: Stage, one: Captured): Captured[] =>
  stage.relay.tape.filter(
    (other) => other.packet.first === one.packet.first && other.from === one.from,
  );

export const MOVES = {
  // People and devices

  call: {
    does: "a person calls an agent",
    weight: 8,
    play: (stage, a, b, c) => {
      const method = c % 4 === 0 ? "slow" : "now";
      person(stage, a).call(device(stage, b), method, c % 3 === 0, c % 7 === 0 ? 2_000 : 30_000);
    },
  },
  listen: {
    does: "a person starts or stops listening to an agent's events",
    weight: 2,
    play: (stage, a, b, c) => person(stage, a).listen(device(stage, b), c % 3 !== 0),
  },
  leave: {
    does: "a person's client ends, and another one starts",
    weight: 2,
    play: (stage, a) => person(stage, a).leave(),
  },
  push: {
    does: "a person pushes a program onto an agent",
    weight: 2,
    play: (stage, a, b, c) => person(stage, a).push(device(stage, b), c % 4 === 0),
  },
  emit: {
    does: "an agent emits an event",
    weight: 2,
    play: (stage, a) => device(stage, a).emit(),
  },
  restart: {
    does: "an agent restarts",
    weight: 3,
    play: (stage, a) => device(stage, a).restart(),
  },
  cutPower: {
    does: "an agent restarts, with a power cut at some step of its boot-count write",
    weight: 2,
    play: (stage, a, b) => device(stage, a).restartWithCut(1 + (b % 300)),
  },
  loseMedium: {
    does: "an agent restarts with an empty medium, and is provisioned again if it requires that",
    weight: 1,
    play: (stage, a) => device(stage, a).loseMedium(),
  },
  undoRotation: {
    does: "an agent restarts after it was provisioned with another secret, and its own again",
    weight: 1,
    play: (stage, a) => device(stage, a).undoRotation(),
  },
  damageSlot: {
    does: "an agent restarts with one slot of its boot count damaged or missing",
    weight: 1,
    play: (stage, a, b) => device(stage, a).damageSlot(b % 2, b % 4 < 2 ? null : "\xff"),
  },
  moment: {
    does: "up to a second passes",
    weight: 4,
    play: (stage, a) => stage.wait(1 + (a % 1_000)),
  },
  while: {
    does: "five to fifty seconds pass",
    weight: 2,
    play: (stage, a) => stage.wait(5_000 + (a % 45_000)),
  },
  idle: {
    does: "two minutes pass, after which sessions must be forgotten",
    weight: 2,
    play: (stage, a) => stage.wait(118_000 + (a % 5_000)),
  },

  // The relay, honest for a while

  flow: {
    does: "everything that waits is delivered in order",
    weight: 10,
    play: (stage) => stage.relay.flow(),
  },
  behave: {
    does: "the relay is honest for one to six seconds",
    weight: 3,
    play: (stage, a) => stage.behave(1_000 + (a % 5_000)),
  },
  step: {
    does: "the oldest waiting packet is delivered",
    weight: 6,
    play: (stage) => {
      const oldest = stage.relay.waiting[0];
      if (oldest !== undefined) stage.relay.pass(oldest);
    },
  },

  // The relay, hostile

  drop: {
    does: "a waiting packet is dropped",
    weight: 3,
    play: (stage, a) => {
      const victim = pick(stage.relay.waiting, a);
      if (victim !== undefined) stage.relay.drop(victim);
    },
  },
  reorder: {
    does: "a waiting packet is delivered out of order",
    weight: 4,
    play: (stage, a) => {
      const early = pick(stage.relay.waiting, a);
      if (early !== undefined) stage.relay.pass(early);
    },
  },
  double: {
    does: "a waiting packet is delivered twice in one tick",
    weight: 3,
    play: (stage, a) => {
      const twice = pick(stage.relay.waiting, a);
      if (twice === undefined) return;
      stage.relay.pass(twice);
      stage.relay.pass(twice);
    },
  },
  replay: {
    does: "a recorded packet is delivered again, in its own form or the other",
    weight: 6,
    play: (stage, a, b) => forge(stage, pick(stage.relay.tape, a), {}, b),
  },
  replaySession: {
    does: "all that one side of a session ever sent is delivered again, in order",
    weight: 3,
    play: (stage, a) => {
      const one = pick(stage.relay.tape, a);
      if (one === undefined) return;
      for (const packet of sessionOf(stage, one)) stage.relay.pass(packet);
    },
  },
  replayOpening: {
    does: "an opening is delivered again, so that the agent answers it again",
    weight: 4,
    play: (stage, a) => {
      const openings = stage.relay.tape.filter(({ packet }) => packet.sid === packet.first);
      const opening = pick(openings, a);
      if (opening !== undefined) stage.relay.pass(opening);
    },
  },
  replayAnswer: {
    does: "an answer to an opening is delivered again, possibly a second one to the same opening",
    weight: 4,
    play: (stage, a) => {
      const answers = stage.relay.tape.filter(({ from, packet }) => from.isAgent && !packet.seq);
      const answer = pick(answers, a);
      if (answer !== undefined) stage.relay.pass(answer);
    },
  },
  reflect: {
    does: "a packet is sent back to its sender",
    weight: 2,
    play: (stage, a) => {
      const packet = pick(stage.relay.tape, a);
      if (packet !== undefined) stage.relay.deliver(packet.from, packet.text, packet.enveloped);
    },
  },
  spliceParty: {
    does: "a packet is delivered to another agent or another person",
    weight: 3,
    play: (stage, a, b) => {
      const packet = pick(stage.relay.tape, a);
      const others: readonly Party[] = [...stage.devices, ...stage.people];
      if (packet !== undefined) stage.relay.deliver(among(others, b), packet.text, b % 2 === 0);
    },
  },
  spliceSession: {
    does: "a packet is given the sid of another session",
    weight: 3,
    play: (stage, a, b) => {
      const other = pick(stage.relay.tape, b);
      forge(stage, pick(stage.relay.tape, a), { sid: other?.packet.sid ?? "" });
    },
  },
  spliceHalves: {
    does: "a packet gets the C of one session and the A of another",
    weight: 2,
    play: (stage, a, b, c) => {
      const [first] = pick(stage.relay.tape, b)?.packet.sid.split(".") ?? [];
      const [, second] = pick(stage.relay.tape, c)?.packet.sid.split(".") ?? [];
      forge(stage, pick(stage.relay.tape, a), { sid: `${first}.${second}` });
    },
  },
  changeSeq: {
    does: "a packet's seq is rolled back or forward",
    weight: 4,
    play: (stage, a, b) => {
      const packet = pick(stage.relay.tape, a);
      const seq = packet?.packet.seq ?? 0;
      const others = [
        seq - 1,
        seq + 1,
        0,
        1,
        seq + 256,
        seq + 65_536,
        2 ** 31,
        2 ** 32 - 1,
        2 ** 32,
      ];
      forge(stage, packet, { seq: Math.max(0, among(others, b)) });
    },
  },
  flip: {
    does: "one bit of a packet is flipped, in its ciphertext, its tag or its sid",
    weight: 3,
    play: (stage, a, b, c) => {
      const packet = pick(stage.relay.tape, a);
      if (packet === undefined) return;
      const { p, sid } = packet.packet;
      if (c % 4 === 0) forge(stage, packet, { sid: flipped(sid.replace(".", "A"), b, c) });
      else forge(stage, packet, { p: flipped(p, b, c) });
    },
  },
  rewriteBase64: {
    does: "a packet's base64url is truncated, padded or spelled differently",
    weight: 3,
    play: (stage, a, b) => {
      const packet = pick(stage.relay.tape, a);
      if (packet !== undefined)
        forge(stage, packet, { p: among(WRONG_BASE64, b)(packet.packet.p) });
    },
  },
  malform: {
    does: "a packet is spelled so that only a careless parser would accept it",
    weight: 3,
    play: (stage, a, b, c) => {
      const packet = pick(stage.relay.tape, a);
      if (packet === undefined || packet.to === null) return;
      stage.relay.deliver(packet.to, among(MALFORMED, b)(packet.packet), c % 2 === 0);
    },
  },
  muddle: {
    does: "an agent receives what only a careless parser would accept as a message",
    weight: 3,
    play: (stage, a, b) => {
      const toAgents = stage.relay.tape.filter(({ to }) => to?.isAgent);
      const packet = pick(toAgents, a);
      if (packet?.to) stage.relay.say(packet.to, among(MUDDLED, b)(packet.text));
    },
  },
  lie: {
    does: "a person receives an error about a packet, delivered or not",
    weight: 3,
    play: (stage, a, b) => {
      const sent = stage.relay.tape.filter(({ from }) => !from.isAgent);
      const about = pick(sent, a);
      if (about === undefined) return;
      const subject = { sid: about.packet.sid, requestId: null };
      stage.relay.say(about.from, encodeError(among(LIES, b), "so it says", subject));
    },
  },
  presence: {
    does: "people are told that an agent went online or offline",
    weight: 1,
    play: (stage, a, b) => {
      const { name } = device(stage, a);
      const message = encodeAgentStatus(name, b % 3 !== 0, "2026-01-01T00:00:00Z");
      for (const one of stage.people) stage.relay.say(one, message);
    },
  },
  cutLink: {
    does: "the link of an agent or a person is cut",
    weight: 2,
    play: (stage, a) => {
      const all: readonly Party[] = [...stage.devices, ...stage.people];
      stage.relay.cut(among(all, a));
    },
  },
} satisfies { readonly [name: string]: Move };

export type MoveName = keyof typeof MOVES;

/** One move with its numbers; a list of them is a history, and can be replayed. */
export type Played = readonly [name: MoveName, a: number, b: number, c: number];

export const play = (stage: Stage, history: readonly Played[]): void => {
  for (const [name, a, b, c] of history) {
    stage.attempt(() => MOVES[name].play(stage, a, b, c));
    if (stage.violations.length > 0) return;
  }
};
