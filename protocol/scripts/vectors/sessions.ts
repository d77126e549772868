/**
 * Whole session traces for both roles and both suites. Every byte is computed by reference.ts; the
 * purpose of each step is described here, so that a reader can follow section 2 rule by rule.
 */
import type { AgentStep, AgentTrace, ClientStep, ClientTrace } from "../../src/testing/files.ts";
import {
  agentPart,
  base64url,
  type Direction,
  epochSecret,
  filler,
  type Identity,
  nextEpoch,
  packet,
  toHex,
} from "./reference.ts";

/** The identity of contract.json, so that the first trace repeats its bytes. */
const LAMP: Identity = {
  agentId: "lamp-1",
  agentToken: "e2e_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3a0kuF",
};
const OTHER_AGENT: Identity = { agentId: "lamp-2", agentToken: LAMP.agentToken };
const OTHER_SECRET: Identity = {
  agentId: "lamp-1",
  agentToken: "e2e_0000000000000000000000000000000000000000000not-it",
};
const RANDOM = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";
const C1_BYTES = "101112131415161718191a1b1c1d1e1f";
const C1 = base64url(Buffer.from(C1_BYTES, "hex"));
const C2_BYTES = toHex(filler("C2", 16));
const C2 = base64url(Buffer.from(C2_BYTES, "hex"));
const C3 = base64url(filler("C3", 16));
const C4 = base64url(filler("C4", 16));
const C5 = base64url(filler("C5", 16));

const PING = '{"jsonrpc":"2.0","id":1,"method":"system.ping"}';
const PONG = '{"jsonrpc":"2.0","id":1,"result":{}}';
const CALL = '{"jsonrpc":"2.0","id":2,"method":"valve.open","params":{"percent":40}}';
const CLOSE = '{"jsonrpc":"2.0","method":"system.close"}';
const EVENT = '{"jsonrpc":"2.0","method":"level","params":{"cm":12}}';

/** Flips one bit of `p`: the first character's highest, or one in the last byte of the tag. */
const forged = (text: string, place: "ciphertext" | "tag"): string => {
  const parsed = JSON.parse(text) as { v: string; sid: string; seq: number; p: string };
  const bytes = Buffer.from(parsed.p, "base64url");
  const at = place === "tag" ? bytes.length - 1 : 0;
  bytes[at] = (bytes[at] as number) ^ 1;
  return JSON.stringify({ ...parsed, p: base64url(bytes) });
};

/** The same packet under another sid or seq, with its seal unchanged. */
const relabelled = (text: string, change: { sid?: string; seq?: number }): string =>
  JSON.stringify({ ...JSON.parse(text), ...change });

type Sids = [string, string, string, string, string];

/** The traces of one suite. */
const tale = (v: string) => {
  const seal = (direction: Direction, sid: string, seq: number, plaintext: string): string =>
    packet(LAMP, v, direction, sid, seq, plaintext);
  const c2a = (sid: string, seq: number, plaintext: string) => seal("c2a", sid, seq, plaintext);
  const a2c = (sid: string, seq: number, plaintext: string) => seal("a2c", sid, seq, plaintext);
  const opening = (c: string) => c2a(c, 0, "");
  const answer = (sid: string) => a2c(sid, 0, "");

  const start = (
    comment: string,
    ms = 0,
    boot = 7,
    options: { serial?: string; sessions?: number; window?: number } = {},
  ): AgentStep => ({
    comment,
    ms,
    start: {
      boot_count: boot,
      device_random: RANDOM,
      serial_number: options.serial ?? null,
      max_sessions: options.sessions ?? 64,
      epoch_sessions: options.window ?? 16,
    },
    held: [],
  });
  const receives = (
    ms: number,
    comment: string,
    receive: string,
    result: Partial<AgentStep>,
    held?: readonly string[],
  ): AgentStep => ({ comment, ms, receive, ...result, ...(held && { held: [...held].sort() }) });
  type Held = readonly string[] | undefined;
  const answers = (ms: number, comment: string, text: string, sid: string, held?: Held) =>
    receives(ms, comment, text, { answer: answer(sid) }, held);
  const refuses = (ms: number, comment: string, text: string, why = "forged", held?: Held) =>
    receives(ms, comment, text, { refused: why }, held);
  /** Hands up a data packet: with `stores` the first of a session, with `takes` a later one. */
  const hands =
    (fresh: boolean) =>
    (
      ms: number,
      comment: string,
      sid: string,
      seq: number,
      plaintext: string,
      held?: Held,
      gap = 0,
    ) =>
      receives(
        ms,
        comment,
        c2a(sid, seq, plaintext),
        { message: { sid, plaintext, gap, fresh } },
        held,
      );
  const stores = hands(true);
  const takes = hands(false);
  const seals = (ms: number, sid: string, plaintext: string, sealed: string | null): AgentStep => ({
    comment:
      sealed === null ? "nothing may be sealed for a sid it does not hold" : "seals the next seq",
    ms,
    seal: { sid, plaintext },
    sealed,
  });
  const agentTrace = (comment: string, steps: AgentStep[]): AgentTrace => ({
    comment,
    v,
    agent_id: LAMP.agentId,
    agent_token: LAMP.agentToken,
    steps,
  });

  // The epochs of start 7, in order.
  const e0 = epochSecret(LAMP, 7, RANDOM, null);
  const e1 = nextEpoch(e0);
  const e2 = nextEpoch(e1);
  const rebooted = epochSecret(LAMP, 8, RANDOM, null);
  const sidIn = (epoch: Uint8Array, c: string) => `${c}.${agentPart(epoch, v, c)}`;
  const [S1, S2, S3, S4, S5] = [C1, C2, C3, C4, C5].map((c) => sidIn(e0, c)) as Sids;
  /** The same in the next epoch, and after a restart. */
  const [N1, N2, N3, , N5] = [C1, C2, C3, C4, C5].map((c) => sidIn(e1, c)) as Sids;
  const [R1, R2] = [C1, C2].map((c) => sidIn(rebooted, c)) as Sids;

  const agent: AgentTrace[] = [
    agentTrace("a session from its opening to replies", [
      start("first power-up with this count"),
      answers(0, "an opening is answered, and nothing is kept", opening(C1), S1, []),
      answers(10, "the same opening gets the identical bytes", opening(C1), S1, []),
      stores(20, "the first data packet stores the session", S1, 1, PING, [S1]),
      seals(21, S1, PONG, a2c(S1, 1, PONG)),
      takes(30, "the next call", S1, 2, CALL),
      seals(31, S1, EVENT, a2c(S1, 2, EVENT)),
      refuses(40, "replay of seq 1", c2a(S1, 1, PING), "replay"),
      refuses(41, "replay of seq 2", c2a(S1, 2, CALL), "replay"),
      answers(50, "the opening once more names the session held", opening(C1), S1, [S1]),
      takes(60, "plaintext that is no JSON-RPC moves the mark", S1, 3, "hello"),
      takes(61, "so does an empty one", S1, 4, ""),
      refuses(62, "its seq is used", c2a(S1, 4, PING), "replay"),
    ]),
    agentTrace("gaps are reported and closed for good", [
      start("power-up"),
      stores(0, "a first data seq over 1 is a gap", S1, 3, PING, [S1], 2),
      takes(1, "six more are lost", S1, 10, CALL, undefined, 6),
      refuses(2, "what comes late is refused", c2a(S1, 4, CALL), "replay"),
      takes(3, "the last seq there is", S1, 4294967295, CALL, undefined, 4294967284),
      refuses(4, "nothing comes after it", c2a(S1, 4294967294, CALL), "replay"),
    ]),
    agentTrace("the last seq may be the first", [
      start("power-up"),
      stores(0, "contract.json: data_at_last_seq", S1, 4294967295, PING, [S1], 4294967294),
    ]),
    agentTrace("forged packets move nothing", [
      start("power-up"),
      refuses(0, "opening with a flipped tag", forged(opening(C1), "tag")),
      refuses(1, "opening of another C", relabelled(opening(C1), { sid: C2 })),
      refuses(2, "opening of another agent", packet(OTHER_AGENT, v, "c2a", C1, 0, "")),
      refuses(3, "opening with another secret", packet(OTHER_SECRET, v, "c2a", C1, 0, "")),
      refuses(
        4,
        "data of no session, flipped",
        forged(c2a(S1, 1, PING), "ciphertext"),
        "forged",
        [],
      ),
      stores(5, "the epoch has not moved: data of this epoch is stored", S1, 1, PING, [S1]),
      refuses(6, "seq 2, ciphertext flipped", forged(c2a(S1, 2, CALL), "ciphertext")),
      refuses(7, "seq 2, tag flipped", forged(c2a(S1, 2, CALL), "tag")),
      refuses(8, "seq 1 called 3", relabelled(c2a(S1, 1, PING), { seq: 3 })),
      takes(9, "seq 2 itself has not been used up", S1, 2, CALL),
    ]),
    agentTrace("what it sent itself is not taken back", [
      start("power-up"),
      refuses(0, "its own answer", answer(S1), "malformed"),
      refuses(1, "the opening sealed with the other direction's key", a2c(C1, 0, "")),
      refuses(2, "data sealed with the other direction's key", a2c(S1, 1, PING), "forged", []),
      stores(3, "a session", S1, 1, PING),
      refuses(4, "its own reply, seq 2", a2c(S1, 2, PONG)),
    ]),
    agentTrace("a recorded session replayed after a restart", [
      start("first power-up"),
      stores(0, "the session that is recorded", S1, 1, PING, [S1]),
      takes(1, "and its call", S1, 2, CALL),
      start("restart: the count is raised, the device's randomness is the same", 1000, 8),
      answers(1001, "the opening is answered with another A", opening(C1), R1, []),
      answers(1002, "the old ping gets that answer too, and no session", c2a(S1, 1, PING), R1, []),
      answers(1003, "so does the old call", c2a(S1, 2, CALL), R1, []),
      seals(1004, S1, PONG, null),
      answers(1005, "a client opens anew", opening(C2), R2),
      stores(1006, "and is held", R2, 1, PING, [R2]),
      answers(1007, "the old call still leads nowhere", c2a(S1, 2, CALL), R1, [R2]),
    ]),
    agentTrace("an epoch stores a window of sessions, and so does the one before it", [
      start("a board whose window is two", 0, 7, { window: 2 }),
      ...[C1, C2, C3, C4, C5].map((c, i) =>
        answers(i, "a crowd opens at once", opening(c), sidIn(e0, c)),
      ),
      stores(10, "the first is held", S1, 1, PING, [S1]),
      answers(11, "its opening once more names the session held", opening(C1), S1),
      stores(12, "the second is held, and the epoch is full", S2, 1, PING, [S1, S2]),
      answers(13, "openings are answered in the next one", opening(C5), N5),
      stores(14, "the epoch before stores as many again: one", S3, 1, PING),
      stores(15, "and two", S4, 1, PING, [S1, S2, S3, S4]),
      answers(16, "then its A counts as any other", c2a(S5, 1, PING), N5),
      stores(17, "the last is held under its new A", N5, 1, PING),
      answers(18, "its packets of the first A still lead nowhere", c2a(S5, 2, CALL), N5, [
        S1,
        S2,
        S3,
        S4,
        N5,
      ]),
    ]),
    agentTrace("the epoch before is over when the current one is full", [
      start("a board whose window is one", 0, 7, { window: 1 }),
      answers(0, "one opens", opening(C1), S1),
      stores(1, "another is held: epoch 1", S2, 1, PING),
      stores(2, "and another, of epoch 1: epoch 2", N3, 1, PING),
      answers(
        3,
        "the answer to the first is from before the last epoch",
        c2a(S1, 1, PING),
        sidIn(e2, C1),
        [S2, N3],
      ),
    ]),
    agentTrace("what an epoch stored is spent", [
      start("power-up"),
      stores(0, "two are held", S1, 1, PING),
      stores(1, "in one epoch", S2, 1, PING),
      answers(2, "a third opens", opening(C3), S3),
      takes(3, "the first leaves", S1, 2, CLOSE, [S2]),
      answers(4, "its opening again moves the epoch", opening(C1), N1),
      answers(5, "and is answered alike from then on", opening(C1), N1),
      answers(6, "its first packet is spent in the epoch before", c2a(S1, 1, PING), N1, [S2]),
      stores(7, "the third is stored in the epoch before", S3, 1, PING, [S2, S3]),
      takes(8, "it leaves", S3, 2, CLOSE),
      answers(9, "and is spent there, too", c2a(S3, 1, PING), N3, [S2]),
    ]),
    agentTrace("a second session for a held C is never stored", [
      start("a board whose window is one", 0, 7, { window: 1 }),
      stores(0, "C is held", S1, 1, PING, [S1]),
      answers(1, "its A in the present epoch", c2a(N1, 1, PING), S1, [S1]),
      answers(2, "any other A", c2a(`${C1}.${"x".repeat(22)}`, 1, PING), S1, [S1]),
      takes(3, "the session goes on", S1, 2, CALL),
      answers(4, "another C is answered in the next epoch", opening(C2), N2),
    ]),
    agentTrace("a session ends 120 s after the last packet it accepted", [
      start("power-up"),
      stores(0, "held", S1, 1, PING, [S1]),
      takes(119999, "just in time", S1, 2, CALL, [S1]),
      refuses(200000, "a replay keeps nothing alive", c2a(S1, 2, CALL), "replay"),
      refuses(210000, "nor does a forgery", forged(c2a(S1, 3, CALL), "tag")),
      { comment: "one millisecond before the end", ms: 239998, held: [S1] },
      { comment: "the end", ms: 239999, held: [] },
      seals(239999, S1, EVENT, null),
      answers(240000, "the held packet comes too late: another A", c2a(S1, 3, CALL), N1, []),
      answers(240001, "the whole session replayed leads nowhere", c2a(S1, 1, PING), N1, []),
    ]),
    agentTrace("the session idle for longest makes room", [
      start("a board that holds two", 0, 7, { sessions: 2 }),
      stores(0, "the first", S1, 1, PING, [S1]),
      stores(1, "the second", S2, 1, PING),
      takes(2, "the first is used", S1, 2, CALL),
      answers(3, "openings make no room, so replays of them throw nobody out", opening(C3), S3, [
        S1,
        S2,
      ]),
      refuses(
        4,
        "nor do first packets that do not verify",
        forged(c2a(S3, 1, PING), "tag"),
        "forged",
        [S1, S2],
      ),
      receives(5, "the third is held: the second is told that it is over", c2a(S3, 1, PING), {
        farewell: a2c(S2, 1, CLOSE),
        message: { sid: S3, plaintext: PING, gap: 0, fresh: true },
        held: [S1, S3],
      }),
      seals(8, S1, PONG, a2c(S1, 1, PONG)),
      seals(9, S1, EVENT, a2c(S1, 2, EVENT)),
      answers(10, "the second replayed: answered as its opening would be", c2a(S2, 1, PING), N2, [
        S1,
        S3,
      ]),
    ]),
    agentTrace("a client leaves", [
      start("power-up"),
      stores(0, "held", S1, 1, PING, [S1]),
      takes(1, "its last packet ends the session", S1, 2, CLOSE, []),
      seals(2, S1, EVENT, null),
      answers(3, "the notice again: answered as its opening would be", c2a(S1, 2, CLOSE), N1, []),
      answers(4, "so is the whole session replayed", c2a(S1, 1, PING), N1, []),
    ]),
    agentTrace("packets belong to their session", [
      start("power-up"),
      stores(0, "one", S1, 1, PING),
      stores(1, "two", S2, 1, PING),
      refuses(2, "a call of one, called two's", relabelled(c2a(S1, 2, CALL), { sid: S2 })),
      refuses(
        3,
        "of one, with two's A",
        relabelled(c2a(S1, 2, CALL), { sid: `${C1}.${agentPart(e0, v, C2)}` }),
      ),
      refuses(
        4,
        "of another agent with the same secret",
        packet(OTHER_AGENT, v, "c2a", S1, 2, CALL),
      ),
      takes(5, "the call itself", S1, 2, CALL),
    ]),
    agentTrace("a serial number is part of the epoch", [
      start("power-up of a board with a serial number", 0, 7, { serial: "SN-0001" }),
      answers(
        0,
        "another A than without",
        opening(C1),
        sidIn(epochSecret(LAMP, 7, RANDOM, "SN-0001"), C1),
      ),
    ]),
  ];

  const clientTrace = (comment: string, steps: ClientStep[]): ClientTrace => ({
    comment,
    v,
    agent_id: LAMP.agentId,
    agent_token: LAMP.agentToken,
    random: [C1_BYTES, C2_BYTES],
    steps,
  });
  const step = (
    ms: number,
    comment: string,
    state: string,
    rest: Partial<ClientStep>,
  ): ClientStep => ({
    comment,
    ms,
    ...rest,
    state,
  });
  const drops = (ms: number, comment: string, state: string, receive: string, refused = "forged") =>
    step(ms, comment, state, { receive, refused });
  const hears = (
    ms: number,
    comment: string,
    state: string,
    seq: number,
    plaintext: string,
    gap = 0,
  ) => step(ms, comment, state, { receive: a2c(S1, seq, plaintext), message: { plaintext, gap } });
  const calls = (ms: number, comment: string, state: string, sealed: string | null) =>
    step(ms, comment, state, { seal: CALL, sealed });
  const opens = step(0, "opens with a fresh C", "opening", {
    command: "open",
    sends: [opening(C1)],
  });
  const answered = step(10, "the answer names C.A; the first packet is a ping", "confirming", {
    receive: answer(S1),
    sends: [c2a(S1, 1, PING)],
  });
  const confirmed = step(20, "the pong opens the session", "open", {
    receive: a2c(S1, 1, PONG),
    opened: S1,
  });
  const shortA = `${C1}.x`;
  const longA = `${C1}.${"x".repeat(64)}`;

  const client: ClientTrace[] = [
    clientTrace("a session from its opening to replies", [
      calls(0, "nothing can be sealed before", "idle", null),
      opens,
      calls(5, "nothing can be sealed before the answer", "opening", null),
      answered,
      calls(15, "nor before the pong", "confirming", null),
      confirmed,
      calls(30, "calls begin at seq 2", "open", c2a(S1, 2, CALL)),
      hears(40, "an event", "open", 2, EVENT),
      drops(50, "the same again", "open", a2c(S1, 2, EVENT), "replay"),
      step(60, "given up", "idle", { command: "give_up" }),
      drops(70, "packets of the abandoned C are dropped", "idle", a2c(S1, 3, EVENT), "foreign"),
      calls(80, "and nothing is sealed", "idle", null),
      step(90, "the next session has another C", "opening", {
        command: "open",
        sends: [opening(C2)],
      }),
      drops(95, "the old C's answer again", "opening", answer(S1), "foreign"),
    ]),
    clientTrace("a repeat of the answer is ignored", [
      opens,
      answered,
      drops(11, "before the pong", "confirming", answer(S1), "repeat"),
      confirmed,
      drops(21, "and after", "open", answer(S1), "repeat"),
    ]),
    clientTrace("a second answer before the pong", [
      opens,
      answered,
      step(15, "the agent restarted: C is abandoned", "waiting", {
        receive: answer(R1),
        abandoned: "otherAnswer",
      }),
      drops(16, "the pong of the abandoned sid is dropped", "waiting", a2c(S1, 1, PONG), "foreign"),
      step(516, "after at most 500 ms a fresh C", "opening", {
        command: "timeout",
        sends: [opening(C2)],
      }),
      step(520, "is answered", "confirming", { receive: answer(R2), sends: [c2a(R2, 1, PING)] }),
      step(530, "and opens", "open", { receive: a2c(R2, 1, PONG), opened: R2 }),
    ]),
    clientTrace("a second answer in an open session", [
      opens,
      answered,
      confirmed,
      calls(25, "a call under way", "open", c2a(S1, 2, CALL)),
      step(30, "another A: its outcome is unknown", "waiting", {
        receive: answer(R1),
        abandoned: "otherAnswer",
      }),
      drops(40, "the late reply is dropped", "waiting", a2c(S1, 2, PONG), "foreign"),
      drops(41, "so is the other answer again", "waiting", answer(R1), "foreign"),
      calls(42, "nothing is sealed", "waiting", null),
      step(531, "a fresh C", "opening", { command: "timeout", sends: [opening(C2)] }),
      drops(532, "the old C's answers mean nothing to it", "opening", answer(S1), "foreign"),
    ]),
    clientTrace("an unverified second answer changes nothing", [
      opens,
      answered,
      confirmed,
      drops(30, "another A, forged", "open", forged(answer(R1), "tag")),
      drops(31, "another A, of another agent", "open", packet(OTHER_AGENT, v, "a2c", R1, 0, "")),
      drops(32, "data under another A", "open", a2c(R1, 1, EVENT), "foreign"),
      hears(33, "the session goes on", "open", 2, EVENT),
    ]),
    clientTrace("forged and reflected answers", [
      opens,
      drops(1, "its own opening", "opening", opening(C1), "malformed"),
      drops(2, "the answer, flipped", "opening", forged(answer(S1), "tag")),
      drops(3, "sealed with the client's key", "opening", c2a(S1, 0, "")),
      drops(
        4,
        "by another agent with the same secret",
        "opening",
        packet(OTHER_AGENT, v, "a2c", S1, 0, ""),
      ),
      drops(5, "with another secret", "opening", packet(OTHER_SECRET, v, "a2c", S1, 0, "")),
      drops(6, "another A than was sealed", "opening", relabelled(answer(S1), { sid: R1 })),
      drops(7, "for another C", "opening", answer(R2), "foreign"),
      drops(8, "data before the answer", "opening", a2c(S1, 1, EVENT), "foreign"),
      answered,
      drops(11, "its own ping", "confirming", c2a(S1, 1, PING)),
      drops(12, "the pong, flipped", "confirming", forged(a2c(S1, 1, PONG), "ciphertext")),
      drops(13, "the pong called seq 2", "confirming", relabelled(a2c(S1, 1, PONG), { seq: 2 })),
      confirmed,
    ]),
    clientTrace("gaps and what comes late", [
      opens,
      answered,
      hears(15, "an event before the pong", "confirming", 1, EVENT),
      step(20, "the pong", "open", { receive: a2c(S1, 2, PONG), opened: S1 }),
      hears(30, "three are lost", "open", 6, EVENT, 3),
      drops(31, "one of them comes late", "open", a2c(S1, 5, EVENT), "replay"),
      hears(32, "the last seq there is", "open", 4294967295, EVENT, 4294967288),
    ]),
    clientTrace("A is opaque: one character", [
      opens,
      step(10, "is taken as it is", "confirming", {
        receive: answer(shortA),
        sends: [c2a(shortA, 1, PING)],
      }),
      step(20, "and opens", "open", { receive: a2c(shortA, 1, PONG), opened: shortA }),
    ]),
    clientTrace("A is opaque: 64 characters", [
      opens,
      drops(9, "65 are refused", "opening", answer(`${longA}x`), "malformed"),
      step(10, "64 are taken", "confirming", {
        receive: answer(longA),
        sends: [c2a(longA, 1, PING)],
      }),
      step(20, "and open", "open", { receive: a2c(longA, 1, PONG), opened: longA }),
    ]),
  ];
  return { agent, client };
};

const one = tale("1");
const two = tale("2");

export const sessionsFile = {
  comment:
    "Traces, step by step in order. Every step has a time in ms. An agent: begin (again) with `start`; give it `receive`; it must send exactly `answer`, or hand up `message`, or do nothing (`refused`; the word is ours); `seal` asks it to seal a plaintext and must give `sealed`; `held` are the sids it holds afterwards, once it has forgotten what was idle too long. A client: `command` or `receive`; it must send exactly `sends`, report `opened`, `message` or `abandoned`, or do nothing (`refused`); `seal` must give `sealed`, null meaning that nothing may be sent; `state` is where it stands afterwards. `random` are the bytes of each C in the order of drawing. Plaintexts are text",
  source: "protocol/README.md, section 2",
  agent: [...one.agent, ...two.agent],
  client: [...one.client, ...two.client],
};
