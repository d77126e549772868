/**
 * Validates bus messages before use: other nodes may run another version, and not everyone who can
 * publish on the bus is a node. A message that does not match is dropped and counted. The field
 * `epoch` is the number of a login.
 */
import { isUtf8 } from "node:buffer";
import { ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { type Static, type TSchema, Type } from "typebox";
import { Check } from "typebox/schema";
import type { Origin } from "../core/bus.ts";
import { USERS_PER_MESSAGE } from "./anti-entropy.ts";

/** Longer than any of our JSON bodies: 400 agents, or 4,096 parts of sids. */
const MAX_JSON_BYTES = 262_144;
/** Agents of one user in one message: up to 60 KB. */
export const AGENTS_PER_MESSAGE = 400;
/** Parts of one client's sids in one message: up to 35 KB. */
export const SIDS_PER_MESSAGE = 512;
/** Up to 25 KB. */
export const NOTICES_PER_MESSAGE = 100;
/**
 * An agent's sessions in the answer to a claim: fits on any server that can carry a client's
 * message. For sessions left out, the clients' nodes report them once the agent has moved.
 */
export const BINDINGS_BYTES = 64_000;
/** Parts of sids in one message. */
const MAX_FIRSTS = 4096;

const Name = Type.String({ pattern: "^[A-Za-z0-9_-]{1,128}$" });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** An age, up to 31 years: what began then must be a date, which clients are told. */
const Milliseconds = Type.Number({ minimum: 0, maximum: 1e12 });
const Firsts = Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: MAX_FIRSTS });
const Text = Type.Union([Type.String({ maxLength: 65_536 }), Type.Null()]);
const Connections = Type.Object({
  client: Count,
  agent: Count,
  firmware: Count,
  waiting: Count,
  closing: Count,
});

export const Bodies = {
  hello: Type.Object({
    agentsOnline: Count,
    connections: Connections,
    isBack: Type.Boolean(),
    /** Absent if the node runs an older version. */
    isReady: Type.Optional(Type.Boolean()),
  }),
  who: Type.Object({ userId: Name }),
  /** Without notices from an older version: they are in the store. */
  notice: Type.Object({
    notices: Type.Optional(
      Type.Array(
        Type.Object({
          seq: Count,
          kind: Type.Enum([
            "end_agent",
            "forget_agent",
            "end_clients",
            "end_user",
            "end_session",
            "end_key",
            "agent_labels",
          ]),
          subject: Name,
          at: Count,
        }),
        { maxItems: NOTICES_PER_MESSAGE },
      ),
    ),
  }),
  failed: Type.Union([
    Type.Object({ address: Type.String({ maxLength: 64 }) }),
    Type.Object({ name: Type.String({ maxLength: 256 }) }),
  ]),
  known: Type.Object({ pair: Type.String({ maxLength: 512 }) }),
  here: Type.Array(Type.Object({ agentId: Name, epoch: Count, onlineForMs: Milliseconds }), {
    maxItems: AGENTS_PER_MESSAGE,
  }),
  holding: Type.Object({
    agents: Type.Array(Type.Object({ agentId: Name, epoch: Count }), {
      maxItems: AGENTS_PER_MESSAGE,
    }),
  }),
  compare: Type.Array(Type.Object({ userId: Name, digest: Count }), {
    maxItems: USERS_PER_MESSAGE,
  }),
  bind: Firsts,
  refuse: Type.Object({ sid: Text, requestId: Text }),
  claimed: Type.Union([
    Type.Object({ kind: Type.Enum(["free", "loop", "superseded"]) }),
    Type.Object({
      kind: Type.Literal("yielded"),
      onlineForMs: Milliseconds,
      takeoverAgesMs: Type.Array(Milliseconds, { maxItems: 64 }),
      isPlanned: Type.Optional(Type.Boolean()),
      bindings: Type.Array(
        Type.Object({
          node: Name,
          connection: Count,
          userId: Name,
          sessionHash: Name,
          renews: Type.Optional(Name),
          /** Absent if it came in without an access key, or the node runs an older version. */
          isKeyed: Type.Optional(Type.Boolean()),
          firsts: Firsts,
        }),
        { maxItems: MAX_FIRSTS },
      ),
    }),
  ]),
};

/** Thrown for an invalid message, and caught where messages arrive. */
export class Malformed extends Error {}

/** The JSON of a body. Throws Malformed. */
export const readBody = <S extends TSchema>(schema: S, body: Uint8Array): Static<S> => {
  if (body.length > MAX_JSON_BYTES) throw new Malformed("a body is too long");
  let value: unknown;
  try {
    value = JSON.parse(textOf(body));
  } catch {
    throw new Malformed("a body is not JSON");
  }
  if (!Check(schema, value)) throw new Malformed("a body has another form");
  return value;
};

/** The bytes of a client's or an agent's message. Throws Malformed. */
export const readFrame = (body: Uint8Array, maxBytes: number): string => {
  if (body.length > maxBytes) throw new Malformed("a message is too long");
  if (!isUtf8(body)) throw new Malformed("a message is not text");
  return textOf(body);
};

/** In the place of a session that a client with an access key does not renew. */
const NONE = "-";
const KEYED = "key";

/**
 * Node, connection, user, session, any session that it renews, and whether it came in with an
 * access key. Older versions write and read the first five.
 */
export const wordsOf = (origin: Origin): (string | number)[] => {
  const { node, connection, userId, sessionHash, renews, isKeyed } = origin;
  const words = [node, connection, userId, sessionHash];
  if (isKeyed) return [...words, renews ?? NONE, KEYED];
  return renews === undefined ? words : [...words, renews];
};

/** Of the words above. Throws Malformed. */
export const readOrigin = (words: readonly string[]): Origin => {
  const [node, connection, userId, sessionHash, renews = NONE, key] = words;
  if (key !== undefined && key !== KEYED) throw new Malformed("neither with a key nor without");
  return {
    ...(renews === NONE ? {} : { renews: readName(renews) }),
    node: readName(node),
    connection: readCount(connection),
    userId: readName(userId),
    sessionHash: readName(sessionHash),
    isKeyed: key === KEYED,
  };
};

/** A node, a user, an agent, a hash. Throws Malformed. */
export const readName = (word: string | undefined): string => {
  if (word === undefined || !/^[A-Za-z0-9_-]{1,128}$/.test(word)) throw new Malformed("not a name");
  return word;
};

/** Throws Malformed. */
export const readCount = (word: string | undefined): number => {
  const count = Number(word);
  if (word === undefined || !/^\d{1,16}$/.test(word) || !Number.isSafeInteger(count)) {
    throw new Malformed("not a number");
  }
  return count;
};

/** Throws Malformed. */
export const readCode = (word: string | undefined): ErrorCode => {
  if (word === undefined || !Object.hasOwn(ERRORS, word)) throw new Malformed("not a code");
  return word as ErrorCode;
};

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
