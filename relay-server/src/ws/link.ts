/**
 * What goes out on one WebSocket: the frames of one turn of the event loop in one write, and the
 * closing handshake (RFC 6455 section 7). Handlers are static and state lies flat on the link,
 * because closures and small objects cost memory ten thousand times.
 *
 *     open --close, peer's close, peer's end--> closing --the socket's close--> closed
 */
import type { Socket } from "node:net";
import type { Frame, HubLink } from "../core/link.ts";
import { closeFrame, inPlace, MASK_BYTES, textFrame } from "./frames.ts";

/** How long a peer may take to answer a close; a shutdown, and a slow peer's queue, wait for it. */
const CLOSE_TIMEOUT_MS = 5000;
/** Below it one buffer of all frames costs less than a list of them for the operating system. */
const JOIN_BYTES = 32_768;
/** For less, V8's collections of young objects cost no more than freeing. */
const FREED_FROM = 8192;

export class SocketLink implements HubLink {
  protected readonly socket: Socket;
  #open = true;
  /** Frames of this turn, and their bytes; null for none. */
  #frames: Buffer[] | null = null;
  #bytes = 0;
  #closeTimer: NodeJS.Timeout | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Whether neither side has begun to close. */
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
    this.socket.resume(); // or the peer's half of the handshake is never read
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
    // Not at the end of this chunk: what other sockets bring in this turn may go here too.
    if (waiting.push(this) === 1) setImmediate(writeLinks);
  }

  /** The relay's close frame, after what was sent; nothing where one side has begun already. */
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
    this.socket.resume(); // or the peer's end is never noticed
  }

  #startClosing(): void {
    this.#open = false;
    this.#closeTimer = setTimeout(destroy, CLOSE_TIMEOUT_MS, this.socket);
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
    // A peer that reads slowly has a queue, and frames that join it may stay for long.
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

  /** Frees a large frame as soon as the operating system has it. */
  #writeAndFree(frame: Buffer): void {
    if (frame.buffer.byteLength < FREED_FROM || !hasAll(frame)) {
      this.socket.write(frame);
      return;
    }
    this.socket.write(frame, (error) => {
      if (error == null) this.free(frame);
    });
  }

  /**
   * Frees what nobody reads any more, without waiting for a garbage collection: left to V8, these
   * let it collect its whole heap, which costs several times what the messages do, and cool the
   * caches.
   */
  protected free({ buffer }: Buffer): void {
    const bytes = buffer.byteLength;
    if (bytes < FREED_FROM) return;
    (buffer as ArrayBuffer).transfer(0);
    this.freed(bytes);
  }

  protected freed(_bytes: number): void {}

  /** The operating system did not take all of it. */
  protected queues(): void {}
}

/** Links with frames of this turn. */
let waiting: SocketLink[] = [];

/** Writes what this turn has brought so far; harmless at any time. */
export const writeLinks = (): void => {
  const links = waiting;
  waiting = [];
  for (const link of links) link.write();
};

const join = (frames: readonly Buffer[], bytes: number, stays: boolean): Buffer => {
  if (!stays) return Buffer.concat(frames, bytes);
  const joined = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const frame of frames) at += frame.copy(joined, at);
  return joined;
};

/**
 * A frame that keeps no more than twice its bytes alive: it may lie in a chunk of many, or in a
 * pool, and the queue's bound counts only its own bytes.
 */
const unpinned = (frame: Buffer): Buffer => {
  if (2 * frame.length >= frame.buffer.byteLength) return frame;
  const own = Buffer.allocUnsafeSlow(frame.length);
  frame.copy(own);
  return own;
};

/**
 * Whether the frame was read from a peer, so that its mask lay before it, and nothing else lies in
 * its memory. Frames of the relay's own or from another node are not counted as read (collect.ts).
 */
const hasAll = ({ buffer, byteOffset, length }: Buffer): boolean =>
  byteOffset === MASK_BYTES && byteOffset + length === buffer.byteLength;

const destroy = (socket: Socket): void => {
  socket.destroy();
};
