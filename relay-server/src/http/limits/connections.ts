/**
 * Limits how many connections without a link may be open, whatever state they are in, and how long
 * a TLS handshake may take. Beyond the limit, the address with the most loses the one that has been
 * open longest, so that a host that holds silent connections does not lock out others. Links have
 * their own limits.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { contained } from "../../base/contain.ts";
import { addressKey } from "../../core/limits/address-group.ts";
import { BySize } from "./by-size.ts";

/** About 65 MB of idle sockets; a fleet that reconnects at once has links, which do not count. */
const MAX_PLAIN = 16_384;
/** About 120 MB: node and OpenSSL keep 58 KB for each, from the first byte of a handshake on. */
const MAX_TLS = 2048;
/** A board with a slow processor takes three seconds. */
const HANDSHAKE_MS = 10_000;

interface Entry {
  readonly owner: Connections;
  readonly socket: Socket;
  readonly key: string;
  readonly group: string;
  handshake: NodeJS.Timeout | null;
}

/** A closed socket no longer knows its peer. */
const entries = new WeakMap<Socket, Entry>();

const destroy = (socket: Socket): void => void socket.destroy();

// One function for all, not kept by links: a closure each would exist ten thousand times.
const onClose = contained(
  "connection",
  "cannot count a closed connection",
  function (this: Socket) {
    const entry = entries.get(this);
    entry?.owner.forget(entry);
  },
);

const endHandshake = contained("timer", "a handshake did not end", destroy);

export class Connections {
  readonly #max: number;
  readonly #isTls: boolean;
  /** By both ends: a TLS socket is another object than the connection below it. */
  readonly #open = new Map<string, Entry>();
  readonly #groups = new BySize<Entry>();

  /** Call it before the server listens. */
  constructor(server: Server, max?: number) {
    this.#isTls = "setSecureContext" in server;
    this.#max = max ?? (this.#isTls ? MAX_TLS : MAX_PLAIN);
    const add = (socket: Socket) => this.#add(socket);
    server.on("connection", contained("connection", "a connection is not counted", add, destroy));
    const secured = (socket: Socket) => stopTimer(this.#open.get(keyOf(socket)));
    server.on("secureConnection", contained("connection", "a handshake has no end", secured));
    // What is left of a failed handshake has nobody to tell.
    const failed = (_error: Error, socket: Socket) => destroy(socket);
    server.on("tlsClientError", contained("connection", "a handshake did not end", failed));
  }

  get size(): number {
    return this.#open.size;
  }

  /** The socket belongs to a link from now on. */
  release(socket: Socket): void {
    const entry = this.#open.get(keyOf(socket));
    if (entry !== undefined) this.forget(entry);
  }

  /** At the end of a relay. */
  destroyAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  /** Called when the connection is gone. */
  forget(entry: Entry): void {
    const { key, group, socket } = entry;
    if (this.#open.get(key) !== entry) return;
    stopTimer(entry);
    this.#open.delete(key);
    this.#groups.delete(group, entry);
    socket.off("close", onClose);
  }

  #add(socket: Socket): void {
    const { remoteAddress } = socket;
    const key = keyOf(socket);
    if (remoteAddress === undefined || this.#open.has(key)) {
      socket.destroy(); // the peer has left
      return;
    }
    if (this.#open.size >= this.#max) this.#dropOne();
    const group = addressKey(remoteAddress);
    const handshake = this.#isTls ? setTimeout(endHandshake, HANDSHAKE_MS, socket).unref() : null;
    const entry: Entry = { owner: this, socket, key, group, handshake };
    this.#open.set(key, entry);
    this.#groups.add(group, entry);
    entries.set(socket, entry);
    socket.on("close", onClose);
  }

  #dropOne(): void {
    const entry = this.#groups.oldestOfLargest();
    if (entry === undefined) return;
    this.forget(entry); // its 'close' comes later
    entry.socket.destroy();
  }
}

const keyOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

const stopTimer = (entry: Entry | undefined): void => {
  if (entry === undefined || entry.handshake === null) return;
  clearTimeout(entry.handshake);
  entry.handshake = null;
};
