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
  const receives = (ms: number, comment: string, text: string, result: Partial<AgentStep>) => ({
    comment,
    ms,
    receive: text,
    ...result,
  });
  const message = (sid: string, plaintext: string, gap: number, fresh: boolean) => ({
    message: { sid, plaintext, gap, fresh },
  });
  const seals = (ms: number, sid: string, plaintext: string, sealed: string | null): AgentStep => ({
    comment: sealed === null ? "nothing may be sealed for a sid it does not hold" : "seals the next seq",
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
  const S1 = sidIn(e0, C1);

  const agent: AgentTrace[] = [
    agentTrace("a session from its opening to replies", [
      start("first power-up with this count"),
      receives(0, "an opening is answered, and nothing is kept", opening(C1), {
        answer: answer(S1),
        held: [],
      }),
      receives(10, "the same opening gets the identical bytes", opening(C1), {
        answer: answer(S1),
        held: [],
      }),
      receives(20, "the first data packet stores the session", c2a(S1, 1, PING), {
        ...message(S1, PING, 0, true),
        held: [S1],
      }),
      seals(21, S1, PONG, a2c(S1, 1, PONG)),
      receives(30, "the next call", c2a(S1, 2, CALL), message(S1, CALL, 0, false)),
      seals(31, S1, EVENT, a2c(S1, 2, EVENT)),
      receives(40, "replay of seq 1", c2a(S1, 1, PING), { refused: "replay" }),
      receives(41, "replay of seq 2", c2a(S1, 2, CALL), { refused: "replay" }),
      receives(50, "the opening once more names the session held", opening(C1), {
        answer: answer(S1),
        held: [S1],
      }),
      receives(60, "plaintext that is no JSON-RPC moves the mark", c2a(S1, 3, "hello"), {
        ...message(S1, "hello", 0, false),
      }),
      receives(61, "so does an empty one", c2a(S1, 4, ""), message(S1, "", 0, false)),
      receives(62, "its seq is used", c2a(S1, 4, PING), { refused: "replay" }),
    ]),
    agentTrace("gaps are reported and closed for good", [
      start("power-up"),
      receives(0, "a first data seq over 1 is a gap", c2a(S1, 3, PING), {
        ...message(S1, PING, 2, true),
        held: [S1],
      }),
      receives(1, "six more are lost", c2a(S1, 10, CALL), message(S1, CALL, 6, false)),
      receives(2, "what comes late is refused", c2a(S1, 4, CALL), { refused: "replay" }),
      receives(3, "the last seq there is", c2a(S1, 4294967295, CALL), {
        ...message(S1, CALL, 4294967284, false),
      }),
      receives(4, "nothing comes after it", c2a(S1, 4294967294, CALL), { refused: "replay" }),
    ]),
    agentTrace("the last seq may be the first", [
      start("power-up"),
      receives(0, "contract.json: data_at_last_seq", c2a(S1, 4294967295, PING), {
        ...message(S1, PING, 4294967294, true),
        held: [S1],
      }),
    ]),
    agentTrace("forged packets move nothing", [
      start("power-up"),
      receives(0, "opening with a flipped tag", forged(opening(C1), "tag"), { refused: "forged" }),
      receives(1, "opening of another C", relabelled(opening(C1), { sid: C2 }), {
        refused: "forged",
      }),
      receives(2, "opening of another agent", packet(OTHER_AGENT, v, "c2a", C1, 0, ""), {
        refused: "forged",
      }),
      receives(3, "opening with another secret", packet(OTHER_SECRET, v, "c2a", C1, 0, ""), {
        refused: "forged",
      }),
      receives(4, "data of no session, flipped", forged(c2a(S1, 1, PING), "ciphertext"), {
        refused: "forged",
        held: [],
      }),
      receives(5, "the epoch has not moved: data of this epoch is stored", c2a(S1, 1, PING), {
        ...message(S1, PING, 0, true),
        held: [S1],
      }),
      receives(6, "seq 2, ciphertext flipped", forged(c2a(S1, 2, CALL), "ciphertext"), {
        refused: "forged",
      }),
      receives(7, "seq 2, tag flipped", forged(c2a(S1, 2, CALL), "tag"), { refused: "forged" }),
      receives(8, "seq 1 called 3", relabelled(c2a(S1, 1, PING), { seq: 3 }), {
        refused: "forged",
      }),
      receives(9, "seq 2 itself has not been used up", c2a(S1, 2, CALL), {
        ...message(S1, CALL, 0, false),
      }),
    ]),
    agentTrace("what it sent itself is not taken back", [
      start("power-up"),
      receives(0, "its own answer", answer(S1), { refused: "malformed" }),
      receives(1, "the opening sealed with the other direction's key", a2c(C1, 0, ""), {
        refused: "forged",
      }),
      receives(2, "data sealed with the other direction's key", a2c(S1, 1, PING), {
        refused: "forged",
        held: [],
      }),
      receives(3, "a session", c2a(S1, 1, PING), message(S1, PING, 0, true)),
      receives(4, "its own reply, seq 2", a2c(S1, 2, PONG), { refused: "forged" }),
    ]),
    agentTrace("a recorded session replayed after a restart", [
      start("first power-up"),
      receives(0, "the session that is recorded", c2a(S1, 1, PING), {
        ...message(S1, PING, 0, true),
        held: [S1],
      }),
      receives(1, "and its call", c2a(S1, 2, CALL), message(S1, CALL, 0, false)),
      start("restart: the count is raised, the device's randomness is the same", 1000, 8),
      receives(1001, "the opening is answered with another A", opening(C1), {
        answer: answer(sidIn(rebooted, C1)),
        held: [],
      }),
      receives(1002, "the old ping gets that answer too, and no session", c2a(S1, 1, PING), {
        answer: answer(sidIn(rebooted, C1)),
        held: [],
      }),
      receives(1003, "so does the old call", c2a(S1, 2, CALL), {
        answer: answer(sidIn(rebooted, C1)),
        held: [],
      }),
      seals(1004, S1, PONG, null),
      receives(1005, "a client opens anew", opening(C2), { answer: answer(sidIn(rebooted, C2)) }),
      receives(1006, "and is held", c2a(sidIn(rebooted, C2), 1, PING), {
        ...message(sidIn(rebooted, C2), PING, 0, true),
        held: [sidIn(rebooted, C2)],
      }),
      receives(1007, "the old call still leads nowhere", c2a(S1, 2, CALL), {
        answer: answer(sidIn(rebooted, C1)),
        held: [sidIn(rebooted, C2)],
      }),
    ]),
    agentTrace("an epoch stores a window of sessions, and so does the one before it", [
      start("a board whose window is two", 0, 7, { window: 2 }),
      ...[C1, C2, C3, C4, C5].map((c, i) =>
        receives(i, "a crowd opens at once", opening(c), { answer: answer(sidIn(e0, c)) }),
      ),
      receives(10, "the first is held", c2a(S1, 1, PING), {
        ...message(S1, PING, 0, true),
        held: [S1],
      }),
      receives(11, "its opening once more names the session held", opening(C1), {
        answer: answer(S1),
      }),
      receives(12, "the second is held, and the epoch is full", c2a(sidIn(e0, C2), 1, PING), {
        ...message(sidIn(e0, C2), PING, 0, true),
        held: [S1, sidIn(e0, C2)].sort(),
      }),
      receives(13, "openings are answered in the next one", opening(C5), {
        answer: answer(sidIn(e1, C5)),
      }),
      receives(14, "the epoch before stores as many again: one", c2a(sidIn(e0, C3), 1, PING), {
        ...message(sidIn(e0, C3), PING, 0, true),
      }),
      receives(15, "and two", c2a(sidIn(e0, C4), 1, PING), {
        ...message(sidIn(e0, C4), PING, 0, true),
        held: [S1, sidIn(e0, C2), sidIn(e0, C3), sidIn(e0, C4)].sort(),
      }),
      receives(16, "then its A counts as any other", c2a(sidIn(e0, C5), 1, PING), {
        answer: answer(sidIn(e1, C5)),
      }),
      receives(17, "the last is held under its new A", c2a(sidIn(e1, C5), 1, PING), {
        ...message(sidIn(e1, C5), PING, 0, true),
      }),
      receives(18, "its packets of the first A still lead nowhere", c2a(sidIn(e0, C5), 2, CALL), {
        answer: answer(sidIn(e1, C5)),
        held: [S1, sidIn(e0, C2), sidIn(e0, C3), sidIn(e0, C4), sidIn(e1, C5)].sort(),
      }),
    ]),
    agentTrace("the epoch before is over when the current one is full", [
      start("a board whose window is one", 0, 7, { window: 1 }),
      receives(0, "one opens", opening(C1), { answer: answer(S1) }),
      receives(1, "another is held: epoch 1", c2a(sidIn(e0, C2), 1, PING), {
        ...message(sidIn(e0, C2), PING, 0, true),
      }),
      receives(2, "and another, of epoch 1: epoch 2", c2a(sidIn(e1, C3), 1, PING), {
        ...message(sidIn(e1, C3), PING, 0, true),
      }),
      receives(3, "the answer to the first is from before the last epoch", c2a(S1, 1, PING), {
        answer: answer(sidIn(e2, C1)),
        held: [sidIn(e0, C2), sidIn(e1, C3)].sort(),
      }),
    ]),
    agentTrace("what an epoch stored is spent", [
      start("power-up"),
      receives(0, "two are held", c2a(S1, 1, PING), message(S1, PING, 0, true)),
      receives(1, "in one epoch", c2a(sidIn(e0, C2), 1, PING), message(sidIn(e0, C2), PING, 0, true)),
      receives(2, "a third opens", opening(C3), { answer: answer(sidIn(e0, C3)) }),
      receives(3, "the first leaves", c2a(S1, 2, CLOSE), {
        ...message(S1, CLOSE, 0, false),
        held: [sidIn(e0, C2)],
      }),
      receives(4, "its opening again moves the epoch", opening(C1), { answer: answer(sidIn(e1, C1)) }),
      receives(5, "and is answered alike from then on", opening(C1), { answer: answer(sidIn(e1, C1)) }),
      receives(6, "its first packet is spent in the epoch before", c2a(S1, 1, PING), {
        answer: answer(sidIn(e1, C1)),
        held: [sidIn(e0, C2)],
      }),
      receives(7, "the third is stored in the epoch before", c2a(sidIn(e0, C3), 1, PING), {
        ...message(sidIn(e0, C3), PING, 0, true),
        held: [sidIn(e0, C2), sidIn(e0, C3)].sort(),
      }),
      receives(8, "it leaves", c2a(sidIn(e0, C3), 2, CLOSE), {
        ...message(sidIn(e0, C3), CLOSE, 0, false),
      }),
      receives(9, "and is spent there, too", c2a(sidIn(e0, C3), 1, PING), {
        answer: answer(sidIn(e1, C3)),
        held: [sidIn(e0, C2)],
      }),
    ]),
    agentTrace("a second session for a held C is never stored", [
      start("a board whose window is one", 0, 7, { window: 1 }),
      receives(0, "C is held", c2a(S1, 1, PING), { ...message(S1, PING, 0, true), held: [S1] }),
      receives(1, "its A in the present epoch", c2a(sidIn(e1, C1), 1, PING), {
        answer: answer(S1),
        held: [S1],
      }),
      receives(2, "any other A", c2a(`${C1}.${"x".repeat(22)}`, 1, PING), {
        answer: answer(S1),
        held: [S1],
      }),
      receives(3, "the session goes on", c2a(S1, 2, CALL), message(S1, CALL, 0, false)),
      receives(4, "another C is answered in the next epoch", opening(C2), {
        answer: answer(sidIn(e1, C2)),
      }),
    ]),
    agentTrace("a session ends 120 s after the last packet it accepted", [
      start("power-up"),
      receives(0, "held", c2a(S1, 1, PING), { ...message(S1, PING, 0, true), held: [S1] }),
      receives(119999, "just in time", c2a(S1, 2, CALL), {
        ...message(S1, CALL, 0, false),
        held: [S1],
      }),
      receives(200000, "a replay keeps nothing alive", c2a(S1, 2, CALL), { refused: "replay" }),
      receives(210000, "nor does a forgery", forged(c2a(S1, 3, CALL), "tag"), {
        refused: "forged",
      }),
      { comment: "one millisecond before the end", ms: 239998, held: [S1] },
      { comment: "the end", ms: 239999, held: [] },
      seals(239999, S1, EVENT, null),
      receives(240000, "the held packet comes too late: another A", c2a(S1, 3, CALL), {
        answer: answer(sidIn(e1, C1)),
        held: [],
      }),
      receives(240001, "the whole session replayed leads nowhere", c2a(S1, 1, PING), {
        answer: answer(sidIn(e1, C1)),
        held: [],
      }),
    ]),
    agentTrace("the session idle for longest makes room", [
      start("a board that holds two", 0, 7, { sessions: 2 }),
      receives(0, "the first", c2a(S1, 1, PING), { ...message(S1, PING, 0, true), held: [S1] }),
      receives(1, "the second", c2a(sidIn(e0, C2), 1, PING), {
        ...message(sidIn(e0, C2), PING, 0, true),
      }),
      receives(2, "the first is used", c2a(S1, 2, CALL), message(S1, CALL, 0, false)),
      receives(3, "openings make no room, so replays of them throw nobody out", opening(C3), {
        answer: answer(sidIn(e0, C3)),
        held: [S1, sidIn(e0, C2)].sort(),
      }),
      receives(4, "nor do first packets that do not verify", forged(c2a(sidIn(e0, C3), 1, PING), "tag"), {
        refused: "forged",
        held: [S1, sidIn(e0, C2)].sort(),
      }),
      receives(5, "the third is held: the second is told that it is over", c2a(sidIn(e0, C3), 1, PING), {
        farewell: a2c(sidIn(e0, C2), 1, CLOSE),
        ...message(sidIn(e0, C3), PING, 0, true),
        held: [S1, sidIn(e0, C3)].sort(),
      }),
      seals(8, S1, PONG, a2c(S1, 1, PONG)),
      seals(9, S1, EVENT, a2c(S1, 2, EVENT)),
      receives(10, "the second replayed: answered as its opening would be", c2a(sidIn(e0, C2), 1, PING), {
        answer: answer(sidIn(e1, C2)),
        held: [S1, sidIn(e0, C3)].sort(),
      }),
    ]),
    agentTrace("a client leaves", [
      start("power-up"),
      receives(0, "held", c2a(S1, 1, PING), { ...message(S1, PING, 0, true), held: [S1] }),
      receives(1, "its last packet ends the session", c2a(S1, 2, CLOSE), {
        ...message(S1, CLOSE, 0, false),
        held: [],
      }),
      seals(2, S1, EVENT, null),
      receives(3, "the notice again: answered as its opening would be", c2a(S1, 2, CLOSE), {
        answer: answer(sidIn(e1, C1)),
        held: [],
      }),
      receives(4, "so is the whole session replayed", c2a(S1, 1, PING), {
        answer: answer(sidIn(e1, C1)),
        held: [],
      }),
    ]),
    agentTrace("packets belong to their session", [
      start("power-up"),
      receives(0, "one", c2a(S1, 1, PING), message(S1, PING, 0, true)),
      receives(1, "two", c2a(sidIn(e0, C2), 1, PING), message(sidIn(e0, C2), PING, 0, true)),
      receives(2, "a call of one, called two's", relabelled(c2a(S1, 2, CALL), { sid: sidIn(e0, C2) }), {
        refused: "forged",
      }),
      receives(3, "of one, with two's A", relabelled(c2a(S1, 2, CALL), { sid: `${C1}.${agentPart(e0, v, C2)}` }), {
        refused: "forged",
      }),
      receives(4, "of another agent with the same secret", packet(OTHER_AGENT, v, "c2a", S1, 2, CALL), {
        refused: "forged",
      }),
      receives(5, "the call itself", c2a(S1, 2, CALL), message(S1, CALL, 0, false)),
    ]),
    agentTrace("a serial number is part of the epoch", [
      start("power-up of a board with a serial number", 0, 7, { serial: "SN-0001" }),
      receives(0, "another A than without", opening(C1), {
        answer: answer(sidIn(epochSecret(LAMP, 7, RANDOM, "SN-0001"), C1)),
      }),
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
  const step = (ms: number, comment: string, state: string, rest: Partial<ClientStep>): ClientStep => ({
    comment,
    ms,
    ...rest,
    state,
  });
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
  const S1b = sidIn(rebooted, C1);
  const S2 = sidIn(rebooted, C2);
  const shortA = `${C1}.x`;
  const longA = `${C1}.${"x".repeat(64)}`;

  const client: ClientTrace[] = [
    clientTrace("a session from its opening to replies", [
      step(0, "nothing can be sealed before", "idle", { seal: CALL, sealed: null }),
      opens,
      step(5, "nothing can be sealed before the answer", "opening", { seal: CALL, sealed: null }),
      answered,
      step(15, "nor before the pong", "confirming", { seal: CALL, sealed: null }),
      confirmed,
      step(30, "calls begin at seq 2", "open", { seal: CALL, sealed: c2a(S1, 2, CALL) }),
      step(40, "an event", "open", { receive: a2c(S1, 2, EVENT), message: { plaintext: EVENT, gap: 0 } }),
      step(50, "the same again", "open", { receive: a2c(S1, 2, EVENT), refused: "replay" }),
      step(60, "given up", "idle", { command: "give_up" }),
      step(70, "packets of the abandoned C are dropped", "idle", {
        receive: a2c(S1, 3, EVENT),
        refused: "foreign",
      }),
      step(80, "and nothing is sealed", "idle", { seal: CALL, sealed: null }),
      step(90, "the next session has another C", "opening", {
        command: "open",
        sends: [opening(C2)],
      }),
      step(95, "the old C's answer again", "opening", { receive: answer(S1), refused: "foreign" }),
    ]),
    clientTrace("a repeat of the answer is ignored", [
      opens,
      answered,
      step(11, "before the pong", "confirming", { receive: answer(S1), refused: "repeat" }),
      confirmed,
      step(21, "and after", "open", { receive: answer(S1), refused: "repeat" }),
    ]),
    clientTrace("a second answer before the pong", [
      opens,
      answered,
      step(15, "the agent restarted: C is abandoned", "waiting", {
        receive: answer(S1b),
        abandoned: "otherAnswer",
      }),
      step(16, "the pong of the abandoned sid is dropped", "waiting", {
        receive: a2c(S1, 1, PONG),
        refused: "foreign",
      }),
      step(516, "after at most 500 ms a fresh C", "opening", {
        command: "timeout",
        sends: [opening(C2)],
      }),
      step(520, "is answered", "confirming", { receive: answer(S2), sends: [c2a(S2, 1, PING)] }),
      step(530, "and opens", "open", { receive: a2c(S2, 1, PONG), opened: S2 }),
    ]),
    clientTrace("a second answer in an open session", [
      opens,
      answered,
      confirmed,
      step(25, "a call under way", "open", { seal: CALL, sealed: c2a(S1, 2, CALL) }),
      step(30, "another A: its outcome is unknown", "waiting", {
        receive: answer(S1b),
        abandoned: "otherAnswer",
      }),
      step(40, "the late reply is dropped", "waiting", {
        receive: a2c(S1, 2, PONG),
        refused: "foreign",
      }),
      step(41, "so is the other answer again", "waiting", { receive: answer(S1b), refused: "foreign" }),
      step(42, "nothing is sealed", "waiting", { seal: CALL, sealed: null }),
      step(531, "a fresh C", "opening", { command: "timeout", sends: [opening(C2)] }),
      step(532, "the old C's answers mean nothing to it", "opening", {
        receive: answer(S1),
        refused: "foreign",
      }),
    ]),
    clientTrace("an unverified second answer changes nothing", [
      opens,
      answered,
      confirmed,
      step(30, "another A, forged", "open", { receive: forged(answer(S1b), "tag"), refused: "forged" }),
      step(31, "another A, of another agent", "open", {
        receive: packet(OTHER_AGENT, v, "a2c", S1b, 0, ""),
        refused: "forged",
      }),
      step(32, "data under another A", "open", { receive: a2c(S1b, 1, EVENT), refused: "foreign" }),
      step(33, "the session goes on", "open", {
        receive: a2c(S1, 2, EVENT),
        message: { plaintext: EVENT, gap: 0 },
      }),
    ]),
    clientTrace("forged and reflected answers", [
      opens,
      step(1, "its own opening", "opening", { receive: opening(C1), refused: "malformed" }),
      step(2, "the answer, flipped", "opening", { receive: forged(answer(S1), "tag"), refused: "forged" }),
      step(3, "sealed with the client's key", "opening", { receive: c2a(S1, 0, ""), refused: "forged" }),
      step(4, "by another agent with the same secret", "opening", {
        receive: packet(OTHER_AGENT, v, "a2c", S1, 0, ""),
        refused: "forged",
      }),
      step(5, "with another secret", "opening", {
        receive: packet(OTHER_SECRET, v, "a2c", S1, 0, ""),
        refused: "forged",
      }),
      step(6, "another A than was sealed", "opening", {
        receive: relabelled(answer(S1), { sid: S1b }),
        refused: "forged",
      }),
      step(7, "for another C", "opening", { receive: answer(S2), refused: "foreign" }),
      step(8, "data before the answer", "opening", { receive: a2c(S1, 1, EVENT), refused: "foreign" }),
      answered,
      step(11, "its own ping", "confirming", { receive: c2a(S1, 1, PING), refused: "forged" }),
      step(12, "the pong, flipped", "confirming", {
        receive: forged(a2c(S1, 1, PONG), "ciphertext"),
        refused: "forged",
      }),
      step(13, "the pong called seq 2", "confirming", {
        receive: relabelled(a2c(S1, 1, PONG), { seq: 2 }),
        refused: "forged",
      }),
      confirmed,
    ]),
    clientTrace("gaps and what comes late", [
      opens,
      answered,
      step(15, "an event before the pong", "confirming", {
        receive: a2c(S1, 1, EVENT),
        message: { plaintext: EVENT, gap: 0 },
      }),
      step(20, "the pong", "open", { receive: a2c(S1, 2, PONG), opened: S1 }),
      step(30, "three are lost", "open", {
        receive: a2c(S1, 6, EVENT),
        message: { plaintext: EVENT, gap: 3 },
      }),
      step(31, "one of them comes late", "open", { receive: a2c(S1, 5, EVENT), refused: "replay" }),
      step(32, "the last seq there is", "open", {
        receive: a2c(S1, 4294967295, EVENT),
        message: { plaintext: EVENT, gap: 4294967288 },
      }),
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
      step(9, "65 are refused", "opening", { receive: answer(`${longA}x`), refused: "malformed" }),
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
