/**
 * Conformance of suites "3" and "4": every step of forward-secrecy.json, as derived and as spoken
 * by whole sessions, and everything that must be refused. Separate from index.ts, because only
 * runtimes with X25519 load it.
 *
 * [portable]
 */
import type { X25519 } from "../crypto/forward-keys.ts";
import { deriveStart } from "../crypto/forward-keys.ts";
import { deriveEpochSecret, extractPrk } from "../crypto/secret-keys.ts";
import type { Suite } from "../crypto/suite.ts";
import type { ForwardVersion } from "../crypto/versions.ts";
import { fromBase64url } from "../encoding/base64url.ts";
import { asciiBytes, asciiText, toHex } from "../encoding/bytes.ts";
import type { AgentVerdict } from "../session/agent.ts";
import { DEFAULT_AGENT_LIMITS } from "../session/agent.ts";
import type { ClientEffect } from "../session/client.ts";
import { DEFAULT_CLIENT_TIMINGS } from "../session/client.ts";
import { ForwardAgentSessions } from "../session/forward-agent.ts";
import { ForwardClientSession } from "../session/forward-client.ts";
import { expectSame, hex } from "./report.ts";

interface Slots {
  readonly count: number;
  readonly seed: string;
}

interface Sealed {
  readonly plaintext: string;
  readonly packet: string;
}

interface ForwardVector {
  readonly v: ForwardVersion;
  readonly pinned: boolean;
  readonly agent_id: string;
  readonly agent_token: string;
  readonly slots_before_start: Slots;
  readonly boot_count: number;
  readonly device_random: string;
  readonly serial_number: string | null;
  readonly device_key: { readonly private: string; readonly public: string } | null;
  readonly C: string;
  readonly sid: string;
  readonly epoch_input: string;
  readonly epoch_secret: string;
  readonly dh: string;
  readonly opening: string;
  readonly answer: string;
  readonly x: string;
  readonly client_seq_1: string;
  readonly agent_seq_1: string;
  readonly dh_after_store: string;
  readonly data: Sealed;
  readonly reply: Sealed;
  readonly data_at_last_seq: Sealed;
}

interface Refusal {
  readonly name: string;
  readonly v: ForwardVersion;
  readonly to: "agent" | "client";
  readonly packet: string;
  /** Agents: null where nothing is sent. */
  readonly reply?: string | null;
  readonly pinned?: boolean;
  readonly outcome?: "abandoned" | "dropped";
}

export interface ForwardFile {
  readonly vectors: readonly ForwardVector[];
  readonly non_canonical_X: readonly {
    readonly v: ForwardVersion;
    readonly client_seq_1: string;
    readonly agent_seq_1: string;
  }[];
  readonly refusals: readonly Refusal[];
}

const agentOf = (suite: Suite, x25519: X25519, vector: ForwardVector): ForwardAgentSessions =>
  new ForwardAgentSessions(
    {
      suite: suite,
      agentId: vector.agent_id,
      agentToken: vector.agent_token,
      version: vector.v,
      bootCount: vector.boot_count,
      deviceRandom: hex(vector.device_random),
      serialNumber: vector.serial_number,
      limits: DEFAULT_AGENT_LIMITS,
    },
    {
      x25519: x25519,
      seed: hex(vector.slots_before_start.seed),
      deviceKey: vector.device_key === null ? null : hex(vector.device_key.private),
    },
  );

/** Draws the vector's C, then its x; other lengths are delays, chosen as zero. */
const clientOf = (suite: Suite, x25519: X25519, vector: ForwardVector): ForwardClientSession =>
  new ForwardClientSession(
    {
      suite: suite,
      random: (length) => {
        if (length === 16) return fromBase64url(vector.C) as Uint8Array;
        return length === 32 ? hex(vector.x) : new Uint8Array(length);
      },
      agentId: vector.agent_id,
      agentToken: vector.agent_token,
      version: vector.v,
      timings: DEFAULT_CLIENT_TIMINGS,
    },
    {
      x25519: x25519,
      deviceKey: vector.device_key === null ? null : hex(vector.device_key.public),
    },
  );

const textOf = (verdict: AgentVerdict): string | null => {
  if (verdict.kind === "answer") return verdict.text;
  return verdict.kind === "message" && verdict.reply !== undefined ? verdict.reply : null;
};

const messageOf = (verdict: AgentVerdict): string =>
  verdict.kind === "message" ? asciiText(verdict.plaintext) : verdict.kind;

const sentBy = (effects: readonly ClientEffect[]): string => {
  const first = effects[0];
  return first !== undefined && first.kind === "send" ? first.text : "nothing";
};

const checkStart = (suite: Suite, vector: ForwardVector, failures: string[]): void => {
  const where = `forward ${vector.v}: start`;
  const prk = extractPrk(suite, vector.agent_id, vector.agent_token);
  const random = hex(vector.device_random);
  const input = deriveEpochSecret(suite, prk, vector.boot_count, random, vector.serial_number);
  expectSame(failures, `${where}: input`, toHex(input), vector.epoch_input);
  const start = deriveStart(suite, hex(vector.slots_before_start.seed), input);
  expectSame(failures, `${where}: epoch`, toHex(start.epoch), vector.epoch_secret);
  expectSame(failures, `${where}: dh`, toHex(start.dh), vector.dh);
};

const checkSession = (
  suite: Suite,
  x25519: X25519,
  vector: ForwardVector,
  failures: string[],
): void => {
  const where = `forward ${vector.v}${vector.pinned ? " pinned" : ""}`;
  const agent = agentOf(suite, x25519, vector);
  const client = clientOf(suite, x25519, vector);
  const same = (what: string, got: unknown, wanted: unknown): void =>
    expectSame(failures, `${where}: ${what}`, got, wanted);

  same("opening", sentBy(client.open(0)), vector.opening);
  same("answer", textOf(agent.receive(vector.opening, 0)), vector.answer);
  same("client's seq 1", sentBy(client.receive(vector.answer, 0)), vector.client_seq_1);
  same("agent's seq 1", textOf(agent.receive(vector.client_seq_1, 0)), vector.agent_seq_1);
  // Whoever reads the agent's memory from here on cannot derive its private value again.
  const { dh } = agent as unknown as { readonly dh: Uint8Array };
  same("dh", toHex(dh), vector.dh_after_store);
  const opened = client.receive(vector.agent_seq_1, 0)[0];
  same("opened", opened === undefined ? "" : opened.kind, "opened");
  same("data", client.seal(asciiBytes(vector.data.plaintext)), vector.data.packet);
  same("data read", messageOf(agent.receive(vector.data.packet, 0)), vector.data.plaintext);
  const reply = agent.seal(vector.sid, asciiBytes(vector.reply.plaintext));
  same("reply", reply, vector.reply.packet);
  const heard = client.receive(vector.reply.packet, 0)[0];
  const text = heard !== undefined && heard.kind === "message" ? asciiText(heard.plaintext) : "";
  same("reply read", text, vector.reply.plaintext);
  // In doubt, the client asks with the same bytes, and hears of the same session.
  same("opening again", client.inDoubt(), vector.opening);
  same("answer again", textOf(agent.receive(vector.opening, 0)), vector.answer);
  same("repeated seq 1", agent.receive(vector.client_seq_1, 0).kind, "refused");
  same(
    "last seq",
    messageOf(agent.receive(vector.data_at_last_seq.packet, 0)),
    vector.data_at_last_seq.plaintext,
  );
};

/** An agent, or a client that waits for the agent's seq 1. */
const checkRefusal = (
  suite: Suite,
  x25519: X25519,
  one: Refusal,
  vector: ForwardVector,
  failures: string[],
): void => {
  const where = `forward ${one.v}: to ${one.to}: ${one.name}`;
  if (one.to === "agent") {
    const agent = agentOf(suite, x25519, vector);
    agent.receive(vector.opening, 0);
    expectSame(failures, where, textOf(agent.receive(one.packet, 0)), one.reply);
    expectSame(failures, `${where}: stored`, agent.held().length, 0);
    // And nothing was spent or moved: the right packet still gets the right answer.
    const right = textOf(agent.receive(vector.client_seq_1, 0));
    expectSame(failures, `${where}: afterwards`, right, vector.agent_seq_1);
    return;
  }
  const client = clientOf(suite, x25519, vector);
  client.open(0);
  client.receive(vector.answer, 0);
  const effect = client.receive(one.packet, 0)[0];
  const kind = effect === undefined ? "nothing" : effect.kind;
  const dropped = one.outcome === "dropped";
  expectSame(failures, where, kind, dropped ? "refused" : "abandoned");
  expectSame(failures, `${where}: state`, client.state, dropped ? "confirming" : "idle");
};

/**
 * A sentence for each failure. `has`: the versions that the suite has. `newWorld` is called before
 * each conversation: all use the same secrets, so that they seal under the same keys and nonces.
 */
export const checkForward = (
  suite: Suite,
  x25519: X25519,
  file: ForwardFile,
  has: (v: ForwardVersion) => boolean = () => true,
  newWorld: () => void = () => undefined,
): string[] => {
  const failures: string[] = [];
  for (const vector of file.vectors) {
    if (!has(vector.v)) continue;
    checkStart(suite, vector, failures);
    newWorld();
    checkSession(suite, x25519, vector, failures);
    for (const one of file.refusals) {
      if (one.v !== vector.v || (one.pinned === true) !== vector.pinned) continue;
      newWorld();
      checkRefusal(suite, x25519, one, vector, failures);
    }
    if (vector.pinned) continue;
    for (const one of file.non_canonical_X) {
      if (one.v !== vector.v) continue;
      newWorld();
      const agent = agentOf(suite, x25519, vector);
      agent.receive(vector.opening, 0);
      const answer = textOf(agent.receive(one.client_seq_1, 0));
      expectSame(failures, `forward ${one.v}: X that is not canonical`, answer, one.agent_seq_1);
    }
  }
  return failures;
};

/** Wycheproof's cases: `tcId`, comment, private value, public value, shared value, result. */
export interface X25519File {
  readonly tests: readonly (readonly [number, string, string, string, string, string])[];
}

const ZEROS = "0".repeat(64);

/** A shared value of zeros must be refused. */
export const checkX25519 = (x25519: X25519, file: X25519File): string[] => {
  const failures: string[] = [];
  for (const [id, comment, own, other, shared] of file.tests) {
    const found = x25519.pair(hex(own)).shared(hex(other));
    const wanted = shared === ZEROS ? null : shared;
    const where = `X25519 ${id} (${comment})`;
    expectSame(failures, where, found === null ? null : toHex(found), wanted);
  }
  return failures;
};

/** The files of suites "3" and "4" in protocol/vectors, by the names that `checkField` takes. */
export const FORWARD_FILE_NAMES: { readonly [field: string]: string } = {
  forward: "forward-secrecy.json",
  x25519: "wycheproof/x25519.json",
};

/** One sentence for each failure in the file of this name; null: it is no file of these suites. */
export const checkField = (
  suite: Suite,
  x25519: X25519,
  field: string,
  file: unknown,
): string[] | null => {
  if (field === "forward") return checkForward(suite, x25519, file as ForwardFile);
  return field === "x25519" ? checkX25519(x25519, file as X25519File) : null;
};
