/**
 * The device's LinkPort over a serial line: a bridge at the other end holds the WebSocket. The
 * bridge connects to its own configured relay, so the url of `connect` is not sent. See wire.ts.
 *
 * A lost OPEN or OPENED is recovered by a repeated request, a lost CREDIT by a PROBE; the core
 * notices a silent bridge, because the relay's pings stop.
 *
 * [portable]
 */
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import { PONG_TEXT } from "@blindrelay/protocol/wire";
import type { Link, LinkEvents, LinkPort, TimerPort } from "../ports.ts";
import { ReceiveWindow, SendWindow } from "./flow.ts";
import type { Checksum } from "./frames.ts";
import { encodeFrame } from "./frames.ts";
import type { Hello } from "./wire.ts";
import {
  decodeHello,
  encodeClose,
  encodeCount,
  encodeHello,
  encodeLink,
  encodeText,
  FRAME_CLOSE,
  FRAME_CREDIT,
  FRAME_HELLO,
  FRAME_OPEN,
  FRAME_OPENED,
  FRAME_PROBE,
  FRAME_TEXT,
  get16,
  get32,
  ROLE_BRIDGE,
  ROLE_DEVICE,
  SERIAL_VERSION,
  TEXT_HEAD_BYTES,
} from "./wire.ts";

/** How often an unanswered request is repeated. */
const ASK_MS = 1000;
const CLOSED_BY_LOSS = 1006;
/** RFC 6455 section 7.4.1: a policy of ours, here against the version. */
const CLOSED_BY_POLICY = 1008;

export interface SerialLinksOptions {
  /** Queues bytes for the line; the runtime's own buffer holds them. */
  write(bytes: Uint8Array): void;
  /** Bytes accepted by `write` and not yet sent, if the runtime knows. */
  queued?(): number;
  readonly timer: TimerPort;
  /**
   * 32 bits that differ from the last start's. Not drawn from a board's randomness, which may
   * repeat after every reset; a boot count is suitable.
   */
  readonly life: number;
  readonly checksum: Checksum;
  /** Bytes of the longest message that this device accepts. */
  readonly maxMessage: number;
  /** Bytes of messages in transit to this device at once; one longer message may be alone. */
  readonly window: number;
}

interface SerialLink {
  readonly id: number;
  readonly events: LinkEvents;
  readonly incoming: ReceiveWindow;
  outgoing: SendWindow | null;
  /** Messages that wait for credit. */
  queue: Uint8Array[];
  queued: number;
  over: boolean;
}

export class SerialLinks implements LinkPort {
  declare private readonly options: SerialLinksOptions;
  private bridge: Hello | null = null;
  private link: SerialLink | null = null;
  private lastId = 0;
  private asking: unknown = null;

  constructor(options: SerialLinksOptions) {
    this.options = options;
    // A bridge that outlived a restart may still refer to previous links: each start has 256 link
    // numbers of its own.
    this.lastId = (options.life << 8) & 65535;
  }

  /** One link at a time, as the core uses it; an earlier one is dropped without notice. */
  connect(_url: string, events: LinkEvents): Link {
    this.lastId = (this.lastId + 1) & 65535;
    const link: SerialLink = {
      id: this.lastId,
      events: events,
      incoming: new ReceiveWindow(this.options.window, this.options.maxMessage),
      outgoing: null,
      queue: [],
      queued: 0,
      over: false,
    };
    this.link = link;
    this.ask();
    return {
      send: (text) => this.send(link, asciiBytes(text)),
      close: (code, reason) => this.close(link, code, reason),
      queuedBytes: () =>
        link.queued + (this.options.queued === undefined ? 0 : this.options.queued()),
    };
  }

  private put(type: number, body: Uint8Array): void {
    this.options.write(encodeFrame(type, body, this.options.checksum));
  }

  private greet(wantsAnswer: boolean): void {
    const hello = {
      version: SERIAL_VERSION,
      role: ROLE_DEVICE,
      wantsAnswer: wantsAnswer,
      life: this.options.life,
      maxMessage: this.options.maxMessage,
      window: this.options.window,
    };
    this.put(FRAME_HELLO, encodeHello(hello));
  }

  /** Requests what is still missing, and repeats until everything is answered. */
  private ask(): void {
    const link = this.link;
    if (link === null || link.over) return;
    if (this.bridge === null) this.greet(true);
    else if (link.outgoing === null) this.put(FRAME_OPEN, encodeLink(link.id));
    else if (link.queued > 0) this.put(FRAME_PROBE, encodeCount(link.id, link.outgoing.sent));
    else return;
    this.askLater();
  }

  private askLater(): void {
    if (this.asking !== null) return;
    this.asking = this.options.timer.set(ASK_MS, () => {
      this.asking = null;
      this.ask();
    });
  }

  private send(link: SerialLink, text: Uint8Array): void {
    if (link.over || link.outgoing === null) return;
    // One pong answers every ping before it; a relay may send any number and read nothing.
    if (text.length === PONG_TEXT.length)
      for (const queued of link.queue) if (queued.length === text.length) return;
    link.queue.push(text);
    link.queued += text.length;
    this.flush(link);
  }

  private flush(link: SerialLink): void {
    const outgoing = link.outgoing;
    if (outgoing === null) return;
    while (link.queue.length > 0) {
      const text = link.queue[0] as Uint8Array;
      if (!outgoing.hasRoom(text.length)) {
        this.askLater();
        return;
      }
      link.queue.shift();
      link.queued -= text.length;
      this.put(FRAME_TEXT, encodeText(link.id, outgoing.take(text.length), text));
    }
  }

  private close(link: SerialLink, code: number, reason: string): void {
    if (link.over) return;
    this.put(FRAME_CLOSE, encodeClose(link.id, code, asciiBytes(reason)));
    this.end(link, code, reason);
  }

  /** `closed` is never reported from inside a call of the core. */
  private end(link: SerialLink, code: number, reason: string): void {
    if (link.over) return;
    link.over = true;
    link.queue = [];
    link.queued = 0;
    if (this.link === link) this.link = null;
    this.options.timer.set(0, () => link.events.closed(code, reason));
  }

  /** Handles a received frame; the body is valid only during the call. */
  receiveFrame(type: number, body: Uint8Array): void {
    if (type === FRAME_HELLO) {
      this.receiveHello(body);
      return;
    }
    const link = this.link;
    if (link === null || body.length < 2 || get16(body, 0) !== link.id) return;
    if (type === FRAME_OPENED) this.opened(link);
    else if (type === FRAME_TEXT && body.length >= TEXT_HEAD_BYTES) this.receiveText(link, body);
    else if (type === FRAME_CREDIT && body.length >= 6) this.receiveCredit(link, get32(body, 2));
    else if (type === FRAME_PROBE && body.length >= 6) {
      link.incoming.probe(get32(body, 2));
      this.giveCredit(link, true);
    } else if (type === FRAME_CLOSE && body.length >= 4) {
      this.end(link, get16(body, 2), asciiText(body.subarray(4)));
    }
  }

  private receiveHello(body: Uint8Array): void {
    const hello = decodeHello(body);
    if (hello === null || hello.role !== ROLE_BRIDGE) return;
    const link = this.link;
    if (hello.version !== SERIAL_VERSION) {
      if (hello.wantsAnswer) this.greet(false);
      if (link !== null) {
        this.end(link, CLOSED_BY_POLICY, `the bridge uses version ${hello.version}`);
      }
      return;
    }
    const known = this.bridge;
    this.bridge = hello;
    if (hello.wantsAnswer) this.greet(false);
    if (link === null) return;
    if (known !== null && known.life !== hello.life && link.outgoing !== null) {
      this.end(link, CLOSED_BY_LOSS, "the bridge restarted");
    } else if (link.outgoing === null) {
      this.put(FRAME_OPEN, encodeLink(link.id));
      this.askLater();
    }
  }

  private opened(link: SerialLink): void {
    const bridge = this.bridge;
    if (bridge === null || link.outgoing !== null) return;
    link.outgoing = new SendWindow(bridge.window);
    link.events.opened();
  }

  private receiveText(link: SerialLink, body: Uint8Array): void {
    const length = body.length - TEXT_HEAD_BYTES;
    // Anything before OPENED means that OPENED was lost.
    this.opened(link);
    if (!link.incoming.accept(get32(body, 2), length)) return;
    const text = asciiText(body.subarray(TEXT_HEAD_BYTES));
    link.events.received(text);
    link.incoming.release(length);
    if (!link.over) this.giveCredit(link, false);
  }

  private receiveCredit(link: SerialLink, limit: number): void {
    if (link.outgoing !== null) link.outgoing.allow(limit);
    this.flush(link);
  }

  private giveCredit(link: SerialLink, asked: boolean): void {
    const limit = link.incoming.credit(asked);
    if (limit !== null) this.put(FRAME_CREDIT, encodeCount(link.id, limit));
  }
}
