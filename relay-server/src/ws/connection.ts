/**
 * One WebSocket and its place in the hub: input goes from a reader to the hub, nothing is decided
 * here. Every connection begins with the quick reader (reader.ts); the first unusual frame and
 * every close switch it to the careful one (careful.ts) permanently.
 */
import { isAscii, isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import { contained, countFault } from "../base/contain.ts";
import type { Connection, Content } from "../core/connections/connection.ts";
import { RateBucket } from "../core/limits/rate-limit.ts";
import { type ScannedPacket, scanPacket } from "../core/routing/scan.ts";
import { CarefulReader, type CarefulSink } from "./careful.ts";
import { type FrameFault, TOO_MANY_FRAMES } from "./frame-filter.ts";
import { pongFrame } from "./frames.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { CLOSE_INTERNAL, type RunningHub } from "./hub-driver.ts";
import { SocketLink } from "./link.ts";
import { FrameReader, type FrameSink } from "./reader.ts";
import type { YoungBuffers } from "./young-buffers.ts";

const CLOSE_PROTOCOL_ERROR = 1002;
/**
 * One chunk in this many is timed, including the first: reading a clock costs as much as a look-up,
 * and the histogram does not need more.
 */
const TIMED_CHUNKS = 16;

/** Shared by all connections of a relay. */
export interface Edge {
  readonly running: RunningHub;
  readonly maxMessageBytes: number;
  /** For control frames and fragments, as for messages. */
  readonly ratePerSecond: number;
  readonly rateBurst: number;
  /** No pongs are sent while this much is queued. */
  readonly outboxBytes: number;
  readonly heldBytes: HeldBytes;
  readonly young: YoungBuffers;
  /** Chunks read so far, over all connections. */
  chunks: number;
  /** When the current chunk was read; all its messages count as received then. */
  now: number;
}

type LinkedSocket = Socket & { relayLink?: RelayLink };

const ignore = (): void => undefined;

/** A fault ends the link that it occurred on; the peer connects again. */
function end(this: Socket): void {
  this.destroy();
}

const onData = contained(
  "connection",
  "a link failed on what it had received",
  function (this: LinkedSocket, chunk: Buffer) {
    (this.relayLink as RelayLink).take(chunk);
  },
  end,
);

const onEnd = contained(
  "connection",
  "a link failed on its peer's end",
  function (this: LinkedSocket) {
    (this.relayLink as RelayLink).ended();
  },
  end,
);

const onClose = contained("connection", "a link failed on its end", function (this: LinkedSocket) {
  (this.relayLink as RelayLink).closed();
});

/** Takes over a socket whose upgrade was just answered; `head` followed the request. */
export const acceptSocket = (edge: Edge, socket: Socket, head: Buffer, address: string): void => {
  const link = new RelayLink(edge, socket);
  (socket as LinkedSocket).relayLink = link;
  if (socket.timeout) socket.setTimeout(0); // it may be left from an earlier request
  socket.setNoDelay();
  if (head.length > 0) socket.unshift(head);
  socket.on("error", ignore); // 'close' follows
  socket.on("end", onEnd);
  socket.on("close", onClose);
  link.connection = edge.running.hub.connect(link, address, edge.running.nowMs());
  socket.on("data", onData);
};

class RelayLink extends SocketLink implements FrameSink, CarefulSink {
  readonly #edge: Edge;
  /** Set at once, by `acceptSocket`. */
  connection!: Connection;
  readonly #reader = new FrameReader();
  /** Null while the quick reader is in use. */
  #careful: CarefulReader | null = null;
  /** For WebSocket pings and pongs, which our SDKs do not send. */
  #controlRate: RateBucket | null = null;
  /** The last scanned packet; the next one is probably of the same session. */
  #scanned: ScannedPacket | null = null;

  constructor(edge: Edge, socket: Socket) {
    super(socket);
    this.#edge = edge;
  }

  // ---- events of the socket

  take(chunk: Buffer): void {
    const { running } = this.#edge;
    this.#edge.now = running.nowMs();
    this.allocated(chunk.length);
    const timed = this.#edge.chunks++ % TIMED_CHUNKS === 0;
    const startedMs = timed ? performance.now() : 0;
    const rest = this.#careful === null ? this.#reader.take(chunk, this) : chunk;
    if (rest !== null) this.#takeCarefully(rest);
    else if (this.#careful === null && !this.#reader.usedInPlace && isAlone(chunk))
      this.free(chunk);
    if (timed) running.timings.routed.observe(performance.now() - startedMs);
  }

  /** The peer has sent its last byte. */
  ended(): void {
    const { hub, nowMs } = this.#edge.running;
    this.endSocket();
    hub.ended(this.connection, nowMs());
  }

  closed(): void {
    this.dispose();
    this.#careful?.end();
    this.#reader.leave(this);
    const { hub, nowMs, log } = this.#edge.running;
    try {
      hub.closed(this.connection, nowMs());
    } catch (error) {
      countFault("hub");
      log.error({ err: error }, "the hub failed on a connection that ended");
    }
  }

  // ---- called by the hub

  override close(code: number, reason: string): void {
    this.#beCareful().end();
    super.close(code, reason);
  }

  protected override queues(): void {
    this.#edge.running.hub.queues(this.connection);
  }

  protected override freed(bytes: number): void {
    this.#edge.young.add(-bytes);
  }

  // ---- called by the readers

  get maxMessageBytes(): number {
    return this.#edge.maxMessageBytes;
  }

  get heldBytes(): HeldBytes {
    return this.#edge.heldBytes;
  }

  get known(): boolean {
    return this.connection.peer !== null;
  }

  get reading(): boolean {
    return this.#careful === null;
  }

  message(payload: Buffer, printable: boolean): void {
    const packet = printable ? scanPacket(payload, this.#scanned) : null;
    if (packet !== null) this.#scanned = packet;
    this.#receive(packet ?? textOf, payload);
  }

  carefulMessage(data: Buffer, isBinary: boolean): void {
    this.#receive(isBinary ? null : textOf, data);
  }

  /** Answered only while there is room: a peer that pings without reading needs no more pongs. */
  ping(payload: Buffer): void {
    if (this.reading && !this.#countControl()) return;
    if (this.open && this.queued() < this.#edge.outboxBytes) this.sendFrame(pongFrame(payload));
  }

  pong(): void {
    this.#countControl();
  }

  allocated(bytes: number): void {
    this.#edge.young.add(bytes);
  }

  noRoom(): void {
    this.#fault({ kind: "memory" });
  }

  closeReceived(code: number | null, reason: Buffer): void {
    // The careful reader, which takes messages that are not UTF-8, lets such a reason through.
    if (!isUtf8(reason)) return this.broken();
    this.startClose(code, reason);
    this.ended();
  }

  broken(): void {
    this.startClose(CLOSE_PROTOCOL_ERROR, "");
    this.ended();
  }

  #receive(content: Content, payload: Buffer): void {
    const { running } = this.#edge;
    try {
      running.hub.receive(this.connection, content, payload, this.#edge.now);
    } catch (error) {
      countFault("hub");
      running.log.error({ err: error }, "the hub failed on a message");
      this.close(CLOSE_INTERNAL, "INTERNAL");
    }
  }

  /** Switches to the careful reader; it first gets what the quick one has begun. */
  #beCareful(): CarefulReader {
    if (this.#careful === null) {
      const begun = this.#reader.leave(this);
      const { running, maxMessageBytes, ratePerSecond, rateBurst, heldBytes } = this.#edge;
      const { nowMs } = running;
      const limits = { maxMessageBytes, ratePerSecond, rateBurst, heldBytes };
      const options = { ...limits, nowMs, rate: this.#controlRate };
      this.#careful = new CarefulReader(options, this);
      if (begun !== null) this.#careful.take(begun, true);
    }
    return this.#careful;
  }

  #takeCarefully(chunk: Buffer): void {
    const { hub } = this.#edge.running;
    const careful = this.#beCareful();
    const unfinished = careful.unfinishedMessage;
    const fault = careful.take(chunk, this.known);
    if (fault !== null) {
      this.#fault(fault);
    } else if (careful.unfinishedMessage !== unfinished) {
      // One chunk may end a message and begin the next, which then gets its full time.
      if (unfinished !== 0) hub.fragmented(this.connection, false, this.#edge.now);
      if (careful.unfinishedMessage !== 0) hub.fragmented(this.connection, true, this.#edge.now);
    }
  }

  /** False if there are too many, and the connection ends. */
  #countControl(): boolean {
    const { ratePerSecond, rateBurst } = this.#edge;
    this.#controlRate ??= new RateBucket(rateBurst, this.#edge.now);
    if (this.#controlRate.take(ratePerSecond, rateBurst, this.#edge.now)) return true;
    this.#fault(TOO_MANY_FRAMES);
    return false;
  }

  #fault(fault: FrameFault): void {
    const detail = fault.kind === "memory" ? null : fault.detail;
    this.#edge.running.hub.brokeFraming(this.connection, detail, this.#edge.now);
  }
}

/** Whether the buffer has its memory to itself. */
const isAlone = ({ buffer, length }: Buffer): boolean => length === buffer.byteLength;

/**
 * ASCII, which the contract requires, is read quickly; other UTF-8 is tolerated, and anything else
 * is not text. Decoded when it is handled: strings of waiting messages would outlive V8's
 * collections of young objects, and many of those cause collections of the whole heap.
 */
const textOf = (data: Uint8Array): string | null =>
  isAscii(data) ? decoded(data, "latin1") : isUtf8(data) ? decoded(data, "utf8") : null;

/** A message that the hub got from here is a Buffer. */
const decoded = (data: Uint8Array, encoding: BufferEncoding): string =>
  (data as Buffer).toString(encoding);
