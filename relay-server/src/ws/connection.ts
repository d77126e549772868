/**
 * One WebSocket and its place in the hub: bytes in, bytes out, nothing decided. Handlers are static
 * and find their state on the socket, because closures cost memory ten thousand times.
 */
import { isAscii, isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { Connection } from "../core/connection.ts";
import type { Frame, HubLink } from "../core/link.ts";
import { FrameFilter } from "./frame-filter.ts";
import { textFrame } from "./frames.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { CLOSE_INTERNAL, type RunningHub } from "./hub-driver.ts";

/** What `ws` makes of an upgrade, with room for our state. */
export class RelaySocket extends WebSocket {
  relayLink: SocketLink | null = null;
}

export interface ReadingLimits {
  maxMessageBytes: number;
  /** One for all connections. */
  heldBytes: HeldBytes;
}

type ChunkListener = (this: Socket, chunk: Buffer) => void;
type LinkedSocket = Socket & { relayLink?: SocketLink };

/** Takes over a WebSocket that was just upgraded on `socket`. */
export const acceptSocket = (
  running: RunningHub,
  ws: RelaySocket,
  socket: Socket,
  address: string,
  { maxMessageBytes, heldBytes }: ReadingLimits,
): void => {
  const filter = new FrameFilter({ maxMessageBytes, heldBytes, nowMs: running.nowMs });
  const link = new SocketLink(running, ws, socket, filter);
  link.connection = running.hub.connect(link, address, running.nowMs());
  ws.relayLink = link;
  ws.on("message", onMessage);
  ws.on("close", onClose);
  ws.on("error", onError);
  filterFrames(socket, link);
};

/** Puts the filter between the socket and ws, which listens to its data since the upgrade. */
const filterFrames = (socket: LinkedSocket, link: SocketLink): void => {
  link.toWs = socket.listeners("data")[0] as ChunkListener;
  socket.relayLink = link;
  socket.off("data", link.toWs);
  socket.on("data", onData);
};

class SocketLink implements HubLink {
  readonly running: RunningHub;
  readonly ws: RelaySocket;
  readonly filter: FrameFilter;
  /** Set at once, by `acceptSocket`. */
  connection!: Connection;
  toWs!: ChunkListener;
  readonly #socket: Socket;
  #corked = false;

  constructor(running: RunningHub, ws: RelaySocket, socket: Socket, filter: FrameFilter) {
    this.running = running;
    this.ws = ws;
    this.#socket = socket;
    this.filter = filter;
  }

  send(message: Frame): void {
    if (this.ws.readyState !== WebSocket.OPEN) {
      return; // the peer said goodbye, and `onClose` will tell the hub
    }
    this.#cork();
    this.#socket.write(textFrame(message));
  }

  queued(): number {
    return this.#socket.writableLength;
  }

  close(code: number, reason: string): void {
    this.filter.end();
    this.ws.close(code, reason);
    this.ws.resume(); // or the peer's half of the handshake is never read
  }

  pause(): void {
    this.ws.pause();
  }

  resume(): void {
    this.ws.resume();
  }

  /** ws has given up on the stream of frames; what still comes is thrown away. */
  stopReading(): void {
    this.#socket.off("data", onData);
  }

  uncork(): void {
    this.#corked = false;
    this.#socket.uncork();
  }

  /** One system call per socket and turn of the event loop, however many messages it carries. */
  #cork(): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      if (corked.push(this) === 1) {
        setImmediate(uncorkAll);
      }
    }
  }
}

let corked: SocketLink[] = [];

const uncorkAll = (): void => {
  const links = corked;
  corked = [];
  for (const link of links) {
    link.uncork();
  }
};

function onData(this: LinkedSocket, chunk: Buffer): void {
  const link = this.relayLink as SocketLink;
  const { filter, running, connection } = link;
  const unfinished = filter.unfinishedMessage;
  const fault = filter.take(
    chunk,
    (bytes) => link.toWs.call(this, bytes),
    connection.peer !== null,
  );
  if (fault !== null) {
    running.hub.brokeFraming(
      connection,
      fault.kind === "memory" ? null : fault.detail,
      running.nowMs(),
    );
  } else if (filter.unfinishedMessage !== unfinished) {
    // One chunk may end a message and begin the next, which then has all of its time.
    if (unfinished !== 0) running.hub.fragmented(connection, false, running.nowMs());
    if (filter.unfinishedMessage !== 0) {
      running.hub.fragmented(connection, true, running.nowMs());
    }
  }
}

function onMessage(this: WebSocket, data: Buffer, isBinary: boolean): void {
  const link = (this as RelaySocket).relayLink as SocketLink;
  const { running, connection } = link;
  const startedMs = performance.now();
  try {
    running.hub.receive(connection, isBinary ? null : textOf(data), data, running.nowMs());
  } catch (error) {
    running.log.error({ err: error }, "the hub failed on a message");
    this.close(CLOSE_INTERNAL);
  }
  running.timings.routed.observe(performance.now() - startedMs);
}

function onClose(this: WebSocket): void {
  const { running, connection, filter } = (this as RelaySocket).relayLink as SocketLink;
  filter.end();
  running.hub.closed(connection, running.nowMs());
}

/** A broken frame, or a socket that died. ws closes it; only the filter must not feed it again. */
function onError(this: WebSocket): void {
  const link = (this as RelaySocket).relayLink as SocketLink;
  link.stopReading();
}

/**
 * ASCII, as the contract wants, is the quick way; other UTF-8 is tolerated, anything else is no
 * text.
 */
const textOf = (data: Buffer): string | null =>
  isAscii(data) ? data.toString("latin1") : isUtf8(data) ? data.toString("utf8") : null;
