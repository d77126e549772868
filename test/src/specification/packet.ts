/**
 * Encrypted packets with node:crypto alone, following sections 2 and 2b of protocol/README.md, and
 * the two ends of a session in as few lines as possible.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { crc32 } from "node:zlib";
import type { Message, RawWebSocket } from "./raw-websocket.ts";

/** What client and agent share, and the relay does not have. */
export interface Shared {
  readonly agentId: string;
  readonly agentToken: string;
  readonly v: "1" | "2" | "3" | "4";
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
/** Two directions of a key and an IV. */
const KEYS_BYTES = 88;
const CHAIN_BYTES = 32;
const CONFIRM_BYTES = 16;
const isForward = ({ v }: Shared): boolean => v === "3" || v === "4";
const cipherOf = (v: Shared["v"]): "aes-128-ccm" =>
  (v === "1" || v === "3" ? "chacha20-poly1305" : "aes-128-ccm") as "aes-128-ccm";
const keyBytesOf = (v: Shared["v"]): number => (v === "1" || v === "3" ? 32 : 16);

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
 * HKDF-SHA256: salt from the agent, input the secret, one block of keys for each version and sid;
 * behind them, under "3" and "4", what chains them to those of the exchange.
 */
const blockOf = ({ agentId, agentToken, v }: Shared, sid: string): Buffer => {
  const length = KEYS_BYTES + CHAIN_BYTES;
  const info = `session|${v}|${sid}`;
  return Buffer.from(hkdfSync("sha256", agentToken, `blindrelay|${agentId}`, info, length));
};

const keysOf = (v: Shared["v"], block: Buffer, direction: Direction) => {
  const own = block.subarray(direction === "c2a" ? 0 : 44);
  return { key: own.subarray(0, keyBytesOf(v)), iv: own.subarray(32, 44) };
};

const publicBytes = (key: KeyObject): Buffer =>
  Buffer.from(key.export({ format: "jwk" }).x as string, "base64url");

/** The keys from seq 2 on, and what the agent proves them with. */
const exchanged = (
  shared: Shared,
  sid: string,
  own: KeyObject,
  other: Buffer,
  [x, y]: readonly [Buffer, Buffer],
): { readonly block: Buffer; readonly confirm: Buffer } => {
  const jwk = { kty: "OKP", crv: "X25519", x: other.toString("base64url") };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const z = diffieHellman({ privateKey: own, publicKey });
  const chain = blockOf(shared, sid).subarray(KEYS_BYTES);
  const info = `data|${shared.v}|${sid}|${x.toString("base64url")}|${y.toString("base64url")}`;
  const okm = Buffer.from(hkdfSync("sha256", z, chain, info, KEYS_BYTES + CONFIRM_BYTES));
  return { block: okm, confirm: okm.subarray(KEYS_BYTES) };
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
  plaintext: string | Buffer,
  block = blockOf(shared, sid),
): string => {
  const { v } = shared;
  const { key, iv } = keysOf(v, block, direction);
  const options = { authTagLength: TAG_BYTES };
  const cipher = createCipheriv(cipherOf(v), key, nonceOf(iv, seq), options);
  const bytes = Buffer.from(plaintext);
  cipher.setAAD(Buffer.from(`${v}|${sid}|${seq}`), { plaintextLength: bytes.length });
  const sealed = [cipher.update(bytes), cipher.final(), cipher.getAuthTag()];
  return JSON.stringify({ v, sid, seq, p: Buffer.concat(sealed).toString("base64url") });
};

/** The plaintext; throws if the tag does not verify. */
export const open = (
  shared: Shared,
  direction: Direction,
  packet: Packet,
  block = blockOf(shared, packet.sid),
): Buffer => {
  const { v } = shared;
  const { sid, seq } = packet;
  const { key, iv } = keysOf(v, block, direction);
  const bytes = Buffer.from(packet.p, "base64url");
  const options = { authTagLength: TAG_BYTES };
  const cipher = createDecipheriv(cipherOf(v), key, nonceOf(iv, seq), options);
  cipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const plaintextLength = bytes.length - TAG_BYTES;
  cipher.setAAD(Buffer.from(`${v}|${sid}|${seq}`), { plaintextLength });
  return Buffer.concat([cipher.update(bytes.subarray(0, -TAG_BYTES)), cipher.final()]);
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
  /** Of the exchange, under "3" and "4". */
  #block: Buffer | undefined;

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
    if (open(this.#shared, "a2c", answer).length > 0) throw new Error("an answer says nothing");
    this.sid = answer.sid;
    if (isForward(this.#shared)) await this.#exchange();
    const pong = await this.call("system.ping");
    if (JSON.stringify(pong.result) !== "{}") throw new Error(JSON.stringify(pong));
    return this;
  }

  /** Seq 1 in both directions: public values, and the agent's proof. */
  async #exchange(): Promise<void> {
    const { privateKey, publicKey } = generateKeyPairSync("x25519");
    const x = publicBytes(publicKey);
    this.#seq = 1;
    this.#link.send(seal(this.#shared, "c2a", this.sid, 1, x));
    const answer = open(this.#shared, "a2c", packetIn(await this.#link.next()));
    const y = answer.subarray(0, 32);
    const { block, confirm } = exchanged(this.#shared, this.sid, privateKey, y, [x, y]);
    if (!confirm.equals(answer.subarray(32))) throw new Error("not proven");
    this.#block = block;
  }

  /** The next packet, sealed but not sent. */
  sealNext(message: object): string {
    this.#seq += 1;
    return seal(this.#shared, "c2a", this.sid, this.#seq, JSON.stringify(message), this.#block);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a result of any shape
  async call(method: string, params?: object): Promise<any> {
    const request = { jsonrpc: "2.0", id: this.#seq + 1, method, ...(params && { params }) };
    this.#link.send(this.sealNext(request));
    return JSON.parse(await this.receive());
  }

  async receive(): Promise<string> {
    return `${open(this.#shared, "a2c", packetIn(await this.#link.next()), this.#block)}`;
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
  /** Of the exchange, under "3" and "4". */
  #block: Buffer | undefined;

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
    const opened = open(shared, "c2a", packet, this.#block);
    if (!packet.sid.includes(".")) {
      const whole = createHmac("sha256", this.#epochSecret).update(`sid|${shared.v}|${packet.sid}`);
      const own = whole.digest().subarray(0, 16).toString("base64url");
      return seal(shared, "a2c", `${packet.sid}.${own}`, 0, "");
    }
    if (isForward(shared) && packet.seq === 1) return this.#exchange(shared, packet.sid, opened);
    const plaintext = `${opened}`;
    this.plaintexts.push(plaintext);
    const { id, method, params } = JSON.parse(plaintext);
    if (id === undefined) return null;
    const result = method === "system.ping" ? {} : handle(method, params);
    this.#seq += 1;
    const reply = JSON.stringify({ jsonrpc: "2.0", id, result });
    return seal(shared, "a2c", packet.sid, this.#seq, reply, this.#block);
  }

  #exchange(shared: Shared, sid: string, x: Buffer): string {
    const { privateKey, publicKey } = generateKeyPairSync("x25519");
    const y = publicBytes(publicKey);
    const { block, confirm } = exchanged(shared, sid, privateKey, x, [x, y]);
    this.#block = block;
    this.#seq = 1;
    return seal(shared, "a2c", sid, 1, Buffer.concat([y, confirm]));
  }
}
