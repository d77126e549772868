/**
 * The sending side of one WebSocket: the frames of one turn of the event loop in one write, and the
 * closing handshake (RFC 6455 section 7). Handlers are static and all state is in fields of the
 * link, because closures and small objects would cost memory ten thousand times.
 *
 *     open --close, peer's close, peer's end--> closing --the socket's close--> closed
 */
import type { Socket } from "node:net";
import { contained } from "../base/contain.ts";
import type { Frame, HubLink } from "../core/link.ts";
import { closeFrame, inPlace, MASK_BYTES, textFrame } from "./frames.ts";

/** How long a peer may take to answer a close; a shutdown, and a slow peer's queue, wait for it. */
const CLOSE_TIMEOUT_MS = 5000;
/** Below this, one buffer of all frames costs less than passing the operating system a list. */
const JOIN_BYTES = 32_768;
/** Freeing smaller buffers costs as much as V8's collections of young objects. */
const FREED_FROM = 8192;

const destroy = contained("timer", "a closing link did not end", (socket: Socket) => {
  socket.destroy();
});

export class SocketLink implements HubLink {
  protected readonly socket: Socket;
  #open = true;
  /** This turn's frames, and their size in bytes; null if there are none. */
  #frames: Buffer[] | null = null;
  #bytes = 0;
  #closeTimer: NodeJS.Timeout | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Neither side has begun to close. */
  protected get open(): boolean {
    return this.#open;
  }

  send(message: Frame): void {
    if (this.#open) this.sendFrame(textFrame(message));
  }

  queued(): number {
    return this.#bytes + this.socket.writableLength;
  }

  close(code: number, reason: string): void {
    this.startClose(code, reason);
    this.socket.resume(); // otherwise the peer's half of the handshake is never read
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  unused(message: Uint8Array): void {
    const frame = inPlace(message);
    if (frame !== null && hasAll(frame)) this.free(frame);
  }

  protected sendFrame(frame: Buffer): void {
    this.#bytes += frame.length;
    if (this.#frames !== null) {
      this.#frames.push(frame);
      return;
    }
    this.#frames = [frame];
    // Not at the end of this chunk: messages from other sockets in this turn can join the write.
    if (waiting.push(this) === 1) setImmediate(writeSoon);
  }

  /**
   * The relay's close frame, after queued messages; ignored if one side has already begun to close.
   */
  protected startClose(code: number | null, reason: string | Uint8Array): void {
    if (!this.#open) return;
    this.sendFrame(closeFrame(code, reason));
    this.#startClosing();
  }

  /** Both sides have closed: queued frames are still sent, then the socket ends. */
  protected endSocket(): void {
    if (this.#open) this.#startClosing();
    this.write();
    this.socket.end();
    this.socket.resume(); // otherwise the peer's end is never noticed
  }

  #startClosing(): void {
    this.#open = false;
    this.#closeTimer = setTimeout(destroy, CLOSE_TIMEOUT_MS, this.socket);
  }

  /** Without a word to the peer. */
  abort(): void {
    this.socket.destroy();
  }

  /** The socket is gone. */
  protected dispose(): void {
    this.#open = false;
    this.#frames = null;
    this.#bytes = 0;
    if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
  }

  /** Hands the frames of this turn to the socket. */
  write(): void {
    const frames = this.#frames;
    if (frames === null) return;
    const bytes = this.#bytes;
    this.#frames = null;
    this.#bytes = 0;
    const { socket } = this;
    // The queue of a slow reader may keep frames for a long time.
    const stays = socket.writableLength > 0;
    if (frames.length === 1) {
      const [frame] = frames as [Buffer];
      this.#writeAndFree(stays ? unpinned(frame) : frame);
    } else if (bytes < JOIN_BYTES) {
      socket.write(join(frames, bytes, stays));
    } else {
      socket.cork();
      for (const frame of frames) this.#writeAndFree(unpinned(frame));
      socket.uncork();
    }
    if (socket.writableLength > 0) this.queues();
  }

  /** Frees a large frame as soon as the operating system has accepted it. */
  #writeAndFree(frame: Buffer): void {
    if (frame.buffer.byteLength < FREED_FROM || !hasAll(frame)) {
      this.socket.write(frame);
      return;
    }
    this.socket.write(
      frame,
      contained("connection", "a frame was not freed", (error?: Error | null) => {
        if (error == null) this.free(frame);
      }),
    );
  }

  /**
   * Frees what is no longer read, without waiting for a garbage collection: V8 would collect its
   * whole heap for these, which costs several times more than the messages do, and cools the
   * caches.
   */
  protected free({ buffer }: Buffer): void {
    const bytes = buffer.byteLength;
    if (bytes < FREED_FROM) return;
    (buffer as ArrayBuffer).transfer(0);
    this.freed(bytes);
  }

  protected freed(_bytes: number): void {}

  /** The operating system did not accept all of it. */
  protected queues(): void {}
}

/** Links with frames of this turn. */
let waiting: SocketLink[] = [];

/** Writes this turn's frames so far; harmless at any time. */
export const writeLinks = (): void => {
  const links = waiting;
  waiting = [];
  for (const link of links) writeLink(link);
};

const writeLink = contained(
  "connection",
  "a link failed on what it sends",
  (link: SocketLink) => link.write(),
  (link) => link.abort(),
);

const writeSoon = contained("connection", "links could not be written", writeLinks);

const join = (frames: readonly Buffer[], bytes: number, stays: boolean): Buffer => {
  if (!stays) return Buffer.concat(frames, bytes);
  const joined = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const frame of frames) at += frame.copy(joined, at);
  return joined;
};

/**
 * A frame that keeps at most twice its bytes alive: it may be part of a chunk or of a pool, and the
 * limit of the queue counts only its own bytes.
 */
const unpinned = (frame: Buffer): Buffer => {
  if (2 * frame.length >= frame.buffer.byteLength) return frame;
  const own = Buffer.allocUnsafeSlow(frame.length);
  frame.copy(own);
  return own;
};

/**
 * Whether the frame was read from a peer, and so had its mask before it, and is alone in its
 * memory. The relay's own frames and those from other nodes are not counted as read
 * (young-buffers.ts).
 */
const hasAll = ({ buffer, byteOffset, length }: Buffer): boolean =>
  byteOffset === MASK_BYTES && byteOffset + length === buffer.byteLength;
