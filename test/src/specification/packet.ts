/**
 * Encrypted packets with node:crypto alone, following section 2 of protocol/README.md, and the two
 * ends of a session in as few lines as possible.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Message, RawWebSocket } from "./raw-websocket.ts";

/** What client and agent share, and the relay does not have. */
export interface Shared {
  readonly agentId: string;
  readonly agentToken: string;
  readonly v: "1" | "2";
}

export interface Packet {
  readonly v: string;
  readonly sid: string;
  readonly seq: number;
  readonly p: string;
}

/** c2a: what the client seals; a2c: what the agent seals. */
type Direction = "c2a" | "a2c";

const TAG_BYTES = 16;
const CIPHERS = { "1": "chacha20-poly1305", "2": "aes-128-ccm" } as const;
const CIPHER_KEY_BYTES = { "1": 32, "2": 16 } as const;

/**
 * A fresh end-to-end secret: 32 random bytes in base62, and a checksum of everything before it.
 */
export const drawAgentToken = (): string => {
  const body = `e2e_${base62(BigInt(`0x${randomBytes(32).toString("hex")}`), 43)}`;
  return body + base62(BigInt(crc32(body)), 6);
};

const base62 = (value: bigint, digits: number): string => {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let text = "";
  for (let left = value; left > 0n; left /= 62n) text = alphabet[Number(left % 62n)] + text;
  return text.padStart(digits, "0");
};

/**
 * HKDF-SHA256: salt from the agent, input the secret, one block of keys for each version and sid.
 */
const keysOf = ({ agentId, agentToken, v }: Shared, sid: string, direction: Direction) => {
  const info = `session|${v}|${sid}`;
  const okm = Buffer.from(hkdfSync("sha256", agentToken, `blindrelay|${agentId}`, info, 88));
  const own = okm.subarray(direction === "c2a" ? 0 : 44);
  return { key: own.subarray(0, CIPHER_KEY_BYTES[v]), iv: own.subarray(32, 44) };
};

const nonceOf = (iv: Buffer, seq: number): Buffer => {
  const nonce = Buffer.from(iv);
  const counter = Buffer.alloc(12);
  counter.writeBigUInt64BE(BigInt(seq), 4);
  for (let i = 0; i < 12; i++) nonce[i] = (nonce[i] as number) ^ (counter[i] as number);
  return nonce;
};

export const seal = (
  shared: Shared,
  direction: Direction,
  sid: string,
  seq: number,
  plaintext: string,
): string => {
  const { v } = shared;
  const { key, iv } = keysOf(shared, sid, direction);
  const options = { authTagLength: TAG_BYTES };
  const cipher = createCipheriv(CIPHERS[v] as "aes-128-ccm", key, nonceOf(iv, seq), options);
  const plaintextLength = Buffer.byteLength(plaintext);
  cipher.setAAD(Buffer.from(`${v}|${sid}|${seq}`), { plaintextLength });
  const sealed = [cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()];
  return JSON.stringify({ v, sid, seq, p: Buffer.concat(sealed).toString("base64url") });
};

/** The plaintext; throws if the tag does not verify. */
export const open = (shared: Shared, direction: Direction, packet: Packet): string => {
  const { v } = shared;
  const { sid, seq } = packet;
  const { key, iv } = keysOf(shared, sid, direction);
  const bytes = Buffer.from(packet.p, "base64url");
  const options = { authTagLength: TAG_BYTES };
  const cipher = createDecipheriv(CIPHERS[v] as "aes-128-ccm", key, nonceOf(iv, seq), options);
  cipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const plaintextLength = bytes.length - TAG_BYTES;
  cipher.setAAD(Buffer.from(`${v}|${sid}|${seq}`), { plaintextLength });
  return cipher.update(bytes.subarray(0, -TAG_BYTES), undefined, "utf8") + cipher.final("utf8");
};

/** The packet in a message, bare or in an envelope. */
export const packetIn = (message: Message): Packet =>
  message.type === "relay" ? JSON.parse(message.payload) : message;

/** A client's side: opens, pings, and calls, each step with the packet that was sent. */
export class ClientSession {
  readonly first = randomBytes(16).toString("base64url");
  sid = "";
  readonly #link: RawWebSocket;
  readonly #shared: Shared;
  #seq = 0;

  constructor(link: RawWebSocket, shared: Shared) {
    this.#link = link;
    this.#shared = shared;
  }

  get opening(): string {
    return seal(this.#shared, "c2a", this.first, 0, "");
  }

  sendOpening(): void {
    const { agentId } = this.#shared;
    this.#link.send({ type: "relay", agent_id: agentId, payload: this.opening });
  }

  /** The opening, its answer, and the ping that proves that the agent is there now. */
  async start(): Promise<this> {
    this.sendOpening();
    const answer = packetIn(await this.#link.next());
    if (!answer.sid.startsWith(`${this.first}.`) || answer.seq !== 0) throw new Error("no answer");
    if (open(this.#shared, "a2c", answer) !== "") throw new Error("an answer says nothing");
    this.sid = answer.sid;
    const pong = await this.call("system.ping");
    if (JSON.stringify(pong.result) !== "{}") throw new Error(JSON.stringify(pong));
    return this;
  }

  /** The next packet, sealed but not sent. */
  sealNext(message: object): string {
    this.#seq += 1;
    return seal(this.#shared, "c2a", this.sid, this.#seq, JSON.stringify(message));
  }

  // biome-ignore lint/suspicious/noExplicitAny: a result of any shape
  async call(method: string, params?: object): Promise<any> {
    const request = { jsonrpc: "2.0", id: this.#seq + 1, method, ...(params && { params }) };
    this.#link.send(this.sealNext(request));
    return JSON.parse(await this.receive());
  }

  async receive(): Promise<string> {
    return open(this.#shared, "a2c", packetIn(await this.#link.next()));
  }
}

/** An agent's side, for one client: answers the opening, pings, and one method of its own. */
export class AgentSession {
  /** What was opened, in order. */
  readonly plaintexts: string[] = [];
  /** Received messages, unchanged. */
  readonly received: string[] = [];
  readonly #epochSecret = randomBytes(32);
  #seq = 0;

  /** Answers until the link ends. `handle` is called for everything but `system.` methods. */
  async serve(
    link: RawWebSocket,
    shared: Shared,
    handle: (method: string, params: object) => object,
  ): Promise<void> {
    for (;;) {
      const message = await link.next();
      if ("closed" in message) return;
      if (message.type !== undefined && message.type !== "relay") continue;
      this.received.push(JSON.stringify(message));
      const answer = this.#answer(shared, packetIn(message), handle);
      const { type, payload: _, ...envelope } = message;
      if (answer !== null) {
        link.send(type === "relay" ? { type, ...envelope, payload: answer } : answer);
      }
    }
  }

  #answer(
    shared: Shared,
    packet: Packet,
    handle: (method: string, params: object) => object,
  ): string | null {
    const plaintext = open(shared, "c2a", packet);
    if (!packet.sid.includes(".")) {
      const whole = createHmac("sha256", this.#epochSecret).update(`sid|${shared.v}|${packet.sid}`);
      const own = whole.digest().subarray(0, 16).toString("base64url");
      return seal(shared, "a2c", `${packet.sid}.${own}`, 0, "");
    }
    this.plaintexts.push(plaintext);
    const { id, method, params } = JSON.parse(plaintext);
    if (id === undefined) return null;
    const result = method === "system.ping" ? {} : handle(method, params);
    this.#seq += 1;
    const reply = JSON.stringify({ jsonrpc: "2.0", id, result });
    return seal(shared, "a2c", packet.sid, this.#seq, reply);
  }
}
