/** Explains a packet: every field, the first rule of section 2 that it breaks, and its content. */
import { MAX_MESSAGE_BYTES, MAX_PLAINTEXT_BYTES, MAX_SEQ } from "@blindrelay/protocol";
import {
  decodeJson,
  deriveSessionKeys,
  extractPrk,
  fromBase64url,
  isBase64urlText,
  isForward,
  isObject,
  isVersion,
  openPacket,
  own,
  ownString,
  type Packet,
  parsePacket,
  rawMember,
  toBase64url,
} from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import type { Secret } from "../config/settings.ts";

export interface PacketReport {
  /** "opening", "answer", "data", or null if the form is wrong. */
  readonly kind: "opening" | "answer" | "data" | null;
  readonly agent_id: string | null;
  readonly v: unknown;
  readonly sid: string | null;
  /** The client's part, C, and the agent's, A. */
  readonly client_part: string | null;
  readonly agent_part: string | null;
  readonly seq: unknown;
  /** Bytes of the plaintext, without the tag. */
  readonly plaintext_bytes: number | null;
  /** Null if there was no secret to try. */
  readonly opened: boolean | null;
  readonly direction: "client to agent" | "agent to client" | null;
  /** The parsed JSON, or else the text. */
  readonly content: unknown;
  readonly problem: string | null;
}

const TAG_BYTES = 16;
const PART_LENGTH = 22;
const SUITES = {
  1: "ChaCha20-Poly1305",
  2: "AES-128-CCM",
  3: "ChaCha20-Poly1305 after X25519",
  4: "AES-128-CCM after X25519",
} as const;

export const suiteName = (v: unknown): string =>
  isVersion(v) ? SUITES[v] : "no suite of this contract";

/** The first rule that a packet's text breaks, in the order of a reader's checks; null for none. */
const formProblem = (text: string, packet: object): string | null => {
  const v = own(packet, "v");
  const sid = ownString(packet, "sid");
  const seq = own(packet, "seq");
  const p = ownString(packet, "p");
  if (text.length > MAX_MESSAGE_BYTES) return `over ${MAX_MESSAGE_BYTES} bytes`;
  if (ownString(packet, "type") !== undefined)
    return 'a text "type" makes it a message, not a packet';
  if (!isVersion(v)) return `v must be "1" to "4", as a string`;
  if (sid === undefined) return "sid is missing or not a string";
  if (p === undefined) return "p is missing or not a string";
  if (typeof seq !== "number") return "seq is missing or not a number";
  const literal = rawMember(text, "seq");
  if (!/^(0|[1-9][0-9]{0,9})$/.test(literal ?? "") || seq > MAX_SEQ) {
    return `seq must be written as a plain whole number up to 2^32 - 1, not ${literal}`;
  }
  const [first = "", ...rest] = sid.split(".");
  const second = rest.length === 0 ? null : rest.join(".");
  if (first.length !== PART_LENGTH)
    return `the client's part of sid has ${first.length} characters, not 22`;
  if (!isBase64urlText(first)) return "the client's part of sid is not base64url";
  if (second !== null && (second.length < 1 || second.length > 64)) {
    return `the agent's part of sid has ${second.length} characters, not 1 to 64`;
  }
  if (second !== null && !isBase64urlText(second))
    return "the agent's part of sid is not base64url";
  if (second === null && seq !== 0) return "a sid without an agent's part goes with seq 0 only";
  if (seq === 0 && p.length !== PART_LENGTH)
    return "seq 0 carries nothing but a tag: p has 22 characters";
  if (p.length < PART_LENGTH) return "p is shorter than a tag";
  if (p.includes("=")) return "p is padded";
  const sealed = fromBase64url(p);
  if (sealed === null) return "p is not canonical base64url";
  if (sealed.length - TAG_BYTES > MAX_PLAINTEXT_BYTES)
    return `the plaintext is over ${MAX_PLAINTEXT_BYTES} bytes`;
  return parsePacket(text) === null ? "it is refused" : null;
};

const readContent = (plaintext: Uint8Array): unknown => {
  const text = Buffer.from(plaintext).toString("utf8");
  if (text === "") return null;
  const value = decodeJson(text);
  return value === undefined ? text : value;
};

const open = (packet: Packet, agentId: string, secret: Secret) => {
  const suite = nodeSuite();
  const prk = extractPrk(suite, agentId, secret.agentToken);
  const keys = deriveSessionKeys(suite, prk, packet.v, packet.sid);
  const toAgent = openPacket(suite, keys.c2a, packet);
  if (toAgent !== null) return { direction: "client to agent", plaintext: toAgent } as const;
  const toClient = openPacket(suite, keys.a2c, packet);
  return toClient === null
    ? null
    : ({ direction: "agent to client", plaintext: toClient } as const);
};

/** Explains a packet. `secretOf`: an agent's available secret, or null. */
export const explainPacket = (
  text: string,
  value: object,
  agentId: string | null,
  secretOf: (agentId: string) => Secret | null,
): PacketReport => {
  const sid = ownString(value, "sid") ?? null;
  const problem = formProblem(text, value);
  const bare = {
    kind: null,
    agent_id: agentId,
    v: own(value, "v") ?? null,
    sid,
    client_part: null,
    agent_part: null,
    seq: own(value, "seq") ?? null,
    plaintext_bytes: null,
    opened: null,
    direction: null,
    content: null,
    problem,
  };
  const packet = problem === null ? parsePacket(text) : null;
  if (packet === null) return bare;
  const shaped: PacketReport = {
    ...bare,
    kind: packet.second === null ? "opening" : packet.seq === 0 ? "answer" : "data",
    client_part: packet.first,
    agent_part: packet.second,
    plaintext_bytes: packet.sealed.length - TAG_BYTES,
  };
  const secret = agentId === null ? null : secretOf(agentId);
  if (agentId === null || secret === null) return shaped;
  if (isForward(packet.v) && packet.seq > 1) {
    return {
      ...shaped,
      problem: `packets of version "${packet.v}" cannot be opened after seq 1: their keys end with the session, and no secret leads to them`,
    };
  }
  const opened = open(packet, agentId, secret);
  if (opened === null) {
    const version =
      secret.version === packet.v ? "" : `, which the keyring has with version ${secret.version}`;
    return {
      ...shaped,
      opened: false,
      problem: `its tag does not verify with the secret at hand for ${agentId}${version}: another secret or agent, or it was changed on the way`,
    };
  }
  return {
    ...shaped,
    opened: true,
    direction: opened.direction,
    // Of "3" and "4": public values.
    content:
      isForward(packet.v) && packet.seq === 1
        ? toBase64url(opened.plaintext)
        : readContent(opened.plaintext),
  };
};

/**
 * The packets in a line of a capture: a packet, an envelope, or JSON (or a log line) that contains
 * one.
 */
export const packetsIn = (
  line: string,
): { readonly text: string; readonly value: object; readonly agentId: string | null }[] => {
  const start = line.indexOf("{");
  const end = line.lastIndexOf("}");
  if (start < 0 || end < start) return [];
  const text = line.slice(start, end + 1);
  return packetsOf(decodeJson(text), text, null);
};

const packetsOf = (
  value: unknown,
  text: string,
  agentId: string | null,
): { readonly text: string; readonly value: object; readonly agentId: string | null }[] => {
  if (typeof value === "string") {
    try {
      return value.startsWith("{") ? packetsOf(JSON.parse(value), value, agentId) : [];
    } catch {
      return [];
    }
  }
  if (!isObject(value)) return [];
  if (["sid", "p"].some((name) => own(value, name) !== undefined))
    return [{ text, value, agentId }];
  const named = ownString(value, "agent_id") ?? agentId;
  return Object.values(value).flatMap((inner) =>
    packetsOf(inner, typeof inner === "string" ? inner : JSON.stringify(inner), named),
  );
};
