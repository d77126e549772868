/**
 * The bridge's end of a serial line to a device that runs the SDK: it opens a link to the relay
 * when the device requests one, and carries texts between the two. It has no secrets except in
 * texts in transit, such as the device's login; sealed content stays sealed. Pure over ports; see
 * wire.ts for the frames and links.ts for the device's end.
 *
 * Bounded in both directions: a device that does not read stops the link from being read (so the
 * relay's queue for it fills, and the senders are notified); a relay that does not read gives the
 * device no credit. A device that asks for links without end gets few of them.
 */
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import type { Link, LinkEvents, Log, Random, TimerPort } from "../ports.ts";
import { ReceiveWindow, SendWindow } from "./flow.ts";
import { type Checksum, encodeFrame } from "./frames.ts";
import { FrameReader } from "./reader.ts";
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
  type Hello,
  maxBody,
  ROLE_BRIDGE,
  ROLE_DEVICE,
  SERIAL_VERSION,
  TEXT_HEAD_BYTES,
} from "./wire.ts";

const GREET_MS = 2000;
const PROBE_MS = 1000;
/** How often a full link to the relay is checked again. */
const DRAIN_MS = 20;
/** Links that a device may have one right after another, and when it may have one more. */
const OPENINGS = 20;
const OPENING_MS = 1000;
/** Limit of a link's queue: beyond it the device's bytes count as held. */
const RELAY_HIGH_BYTES = 131072;
/** Limit of texts for the device: beyond it the link is paused, below half of it resumed. */
const DEVICE_HIGH_BYTES = 262144;
/** What a text costs beside its bytes while it waits: a relay may send any number of empty ones. */
const TEXT_OVERHEAD_BYTES = 64;
const CLOSE_GIVEN_UP = 4000;
const CLOSED_BY_LOSS = 1006;
const CTRL_C = 3;
/** One in ten contains a Ctrl-C. */
const MAX_DRAWS = 50;

/** A link that can be paused. */
export interface PausableLink extends Link {
  pause(): void;
  resume(): void;
}

export interface CarrierOptions {
  /** Queues bytes for the line. */
  write(bytes: Uint8Array): void;
  /** Whether the line accepts more now; call `writable` when it does again. */
  ready(): boolean;
  /** Connects to the relay that the bridge is configured for. */
  connect(events: LinkEvents): PausableLink;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly checksum: Checksum;
  readonly log: Log;
  readonly maxMessage: number;
  /** Bytes of texts from the device in transit; at least maxMessage. */
  readonly window: number;
}

export interface CarrierCounters {
  /** Texts carried. */
  toRelay: number;
  toDevice: number;
  /** Texts longer than the device accepts. */
  tooLong: number;
  /** Bytes of the device's texts that were lost on the line. */
  lostBytes: number;
}

interface Carried {
  readonly id: number;
  readonly incoming: ReceiveWindow;
  readonly outgoing: SendWindow;
  link: PausableLink | null;
  opened: boolean;
  over: boolean;
  paused: boolean;
  readonly queue: Uint8Array[];
  queued: number;
  /** Lengths of texts that the relay's link has not sent yet. */
  unsent: number;
}

export class SerialCarrier {
  readonly counters: CarrierCounters = { toRelay: 0, toDevice: 0, tooLong: 0, lostBytes: 0 };
  private readonly options: CarrierOptions;
  private readonly reader: FrameReader;
  private readonly life: number;
  private device: Hello | null = null;
  private carried: Carried | null = null;
  private ended = false;
  private versionTold = false;
  private timers = new Set<unknown>();
  private probing = false;
  private draining = false;
  private openings = OPENINGS;
  private openingsAt: number;

  constructor(options: CarrierOptions) {
    this.options = options;
    this.openingsAt = options.timer.now();
    this.life = this.drawLife();
    this.reader = new FrameReader(maxBody(options.maxMessage), options.checksum, (type, body) =>
      this.receiveFrame(type, body),
    );
    this.greetUntilKnown();
  }

  /** Bytes from the line. */
  receive(bytes: Uint8Array): void {
    if (!this.ended) this.reader.receive(bytes);
  }

  /** The line accepts bytes again. */
  writable(): void {
    if (this.carried !== null) this.flush(this.carried);
  }

  /** The line is gone, or the bridge stops: the device goes offline. */
  end(reason: string): void {
    if (this.ended) return;
    this.ended = true;
    for (const timer of this.timers) this.options.timer.clear(timer);
    if (this.carried !== null) this.drop(this.carried, CLOSE_GIVEN_UP, reason);
  }

  /** Bytes held for either side: what the memory limit applies to. */
  held(): number {
    const carried = this.carried;
    return carried === null ? 0 : carried.queued + carried.unsent;
  }

  /** Pieces from the line that were not frames. */
  garbage(): number {
    return this.reader.counters.garbage;
  }

  private later(ms: number, fn: () => void): void {
    const timer = this.options.timer.set(ms, () => {
      this.timers.delete(timer);
      fn();
    });
    this.timers.add(timer);
  }

  private put(type: number, body: Uint8Array): void {
    if (!this.ended) this.options.write(encodeFrame(type, body, this.options.checksum));
  }

  private helloOf(life: number, wantsAnswer: boolean): Uint8Array {
    const { maxMessage, window } = this.options;
    const hello = { version: SERIAL_VERSION, role: ROLE_BRIDGE, wantsAnswer };
    return encodeHello({ ...hello, life, maxMessage, window });
  }

  /**
   * The console of a booting board may still be on this line, where 3 is Ctrl-C and ends the start:
   * so the unsolicited greeting contains none.
   */
  private drawLife(): number {
    for (let tries = 1; ; tries++) {
      const life = get32(this.options.random(4), 0);
      const frame = encodeFrame(FRAME_HELLO, this.helloOf(life, true), this.options.checksum);
      if (!frame.includes(CTRL_C) || tries === MAX_DRAWS) return life;
    }
  }

  private greet(wantsAnswer: boolean): void {
    this.put(FRAME_HELLO, this.helloOf(this.life, wantsAnswer));
  }

  private greetUntilKnown(): void {
    if (this.device !== null || this.ended) return;
    if (this.options.ready()) this.greet(true);
    this.later(GREET_MS, () => this.greetUntilKnown());
  }

  private receiveFrame(type: number, body: Uint8Array): void {
    if (type === FRAME_HELLO) {
      this.receiveHello(body);
      return;
    }
    if (body.length < 2) return;
    if (this.device === null) {
      this.greet(true);
      return;
    }
    const id = get16(body, 0);
    if (type === FRAME_OPEN) {
      this.open(id, this.device);
      return;
    }
    const carried = this.carried;
    if (carried === null || carried.id !== id || carried.over) {
      if (type !== FRAME_CLOSE) this.sayClosed(id, CLOSED_BY_LOSS, "not connected");
    } else if (type === FRAME_TEXT && body.length >= TEXT_HEAD_BYTES) {
      this.receiveText(carried, body);
    } else if (type === FRAME_CREDIT && body.length >= 6) {
      carried.outgoing.allow(get32(body, 2));
      this.flush(carried);
    } else if (type === FRAME_PROBE && body.length >= 6) {
      this.countLost(carried, () => carried.incoming.probe(get32(body, 2)));
      this.giveCredit(carried, true);
    } else if (type === FRAME_CLOSE && body.length >= 4) {
      this.drop(carried, CLOSE_GIVEN_UP, "the device disconnected");
    }
  }

  private receiveHello(body: Uint8Array): void {
    const hello = decodeHello(body);
    if (hello === null || hello.role !== ROLE_DEVICE) return;
    if (hello.version !== SERIAL_VERSION) {
      if (hello.wantsAnswer) this.greet(false);
      if (!this.versionTold) {
        this.options.log("error", "the device uses another version of the serial framing", {
          version: hello.version,
          ours: SERIAL_VERSION,
        });
      }
      this.versionTold = true;
      return;
    }
    const known = this.device;
    this.device = hello;
    if (hello.wantsAnswer) this.greet(false);
    if (known !== null && known.life !== hello.life && this.carried !== null) {
      this.drop(this.carried, CLOSE_GIVEN_UP, "the device restarted");
    }
  }

  private open(id: number, device: Hello): void {
    const known = this.carried;
    if (known !== null && known.id === id && !known.over) {
      if (known.opened) this.put(FRAME_OPENED, encodeLink(id));
      return;
    }
    if (known !== null) this.drop(known, CLOSE_GIVEN_UP, "the device reconnected");
    if (!this.mayOpen()) {
      this.sayClosed(id, CLOSED_BY_LOSS, "too many connections at once");
      return;
    }
    const carried: Carried = {
      id,
      incoming: new ReceiveWindow(this.options.window, this.options.maxMessage),
      outgoing: new SendWindow(device.window),
      link: null,
      opened: false,
      over: false,
      paused: false,
      queue: [],
      queued: 0,
      unsent: 0,
    };
    this.carried = carried;
    carried.link = this.options.connect({
      opened: () => {
        if (carried.over) return;
        carried.opened = true;
        this.put(FRAME_OPENED, encodeLink(id));
      },
      received: (text) => this.receiveFromRelay(carried, device, text),
      closed: (code, reason) => {
        if (carried.over) return;
        this.forget(carried);
        this.sayClosed(id, code, reason);
      },
    });
  }

  private mayOpen(): boolean {
    const now = this.options.timer.now();
    const more = Math.floor((now - this.openingsAt) / OPENING_MS);
    this.openings = Math.min(OPENINGS, this.openings + more);
    this.openingsAt += more * OPENING_MS;
    if (this.openings === 0) return false;
    this.openings--;
    return true;
  }

  private sayClosed(id: number, code: number, reason: string): void {
    this.put(FRAME_CLOSE, encodeClose(id, code, asciiBytes(reason.slice(0, 40))));
  }

  private drop(carried: Carried, code: number, reason: string): void {
    const { link, over } = carried;
    this.forget(carried);
    if (!over && link !== null) {
      // A paused socket would not receive its closing handshake.
      if (carried.paused) link.resume();
      link.close(code, reason);
    }
  }

  private forget(carried: Carried): void {
    carried.over = true;
    carried.queue.length = 0;
    carried.queued = 0;
    carried.unsent = 0;
    if (this.carried === carried) this.carried = null;
  }

  // To the device

  private receiveFromRelay(carried: Carried, device: Hello, text: string): void {
    if (carried.over) return;
    const bytes = asciiBytes(text);
    if (bytes.length > device.maxMessage) {
      this.counters.tooLong++;
      this.options.log("warn", "a message is longer than the device takes", {
        bytes: bytes.length,
        limit: device.maxMessage,
      });
      return;
    }
    carried.queue.push(bytes);
    carried.queued += TEXT_OVERHEAD_BYTES + bytes.length;
    this.flush(carried);
    if (carried.queued > DEVICE_HIGH_BYTES && !carried.paused) {
      carried.paused = true;
      carried.link?.pause();
    }
  }

  private flush(carried: Carried): void {
    while (carried.queue.length > 0 && !carried.over) {
      const bytes = carried.queue[0] as Uint8Array;
      if (!this.options.ready()) break;
      if (!carried.outgoing.hasRoom(bytes.length)) {
        this.probeLater();
        break;
      }
      carried.queue.shift();
      carried.queued -= TEXT_OVERHEAD_BYTES + bytes.length;
      this.counters.toDevice++;
      const offset = carried.outgoing.take(bytes.length);
      this.put(FRAME_TEXT, encodeText(carried.id, offset, bytes));
    }
    if (carried.paused && carried.queued < DEVICE_HIGH_BYTES / 2 && !carried.over) {
      carried.paused = false;
      carried.link?.resume();
    }
  }

  private probeLater(): void {
    if (this.probing) return;
    this.probing = true;
    this.later(PROBE_MS, () => {
      this.probing = false;
      // The one of now: a timer that was set for the link before is also its timer.
      const { carried } = this;
      if (carried === null || carried.queue.length === 0) return;
      this.put(FRAME_PROBE, encodeCount(carried.id, carried.outgoing.sent));
      this.probeLater();
    });
  }

  // To the relay

  private receiveText(carried: Carried, body: Uint8Array): void {
    const length = body.length - TEXT_HEAD_BYTES;
    if (!this.countLost(carried, () => carried.incoming.accept(get32(body, 2), length))) return;
    if (carried.opened) {
      this.counters.toRelay++;
      carried.link?.send(asciiText(body.subarray(TEXT_HEAD_BYTES)));
    }
    carried.unsent += length;
    this.drain(carried);
  }

  private countLost<T>({ incoming }: Carried, step: () => T): T {
    const before = incoming.lost;
    const result = step();
    this.counters.lostBytes += incoming.lost - before;
    return result;
  }

  /** Grants credit for what the relay's link has sent. */
  private drain(carried: Carried): void {
    if (carried.over) return;
    if ((carried.link?.queuedBytes?.() ?? 0) <= RELAY_HIGH_BYTES) {
      carried.incoming.release(carried.unsent);
      carried.unsent = 0;
      this.giveCredit(carried, false);
    } else if (!this.draining) {
      this.draining = true;
      this.later(DRAIN_MS, () => {
        this.draining = false;
        if (this.carried !== null) this.drain(this.carried);
      });
    }
  }

  private giveCredit(carried: Carried, asked: boolean): void {
    const limit = carried.incoming.credit(asked);
    if (limit !== null) this.put(FRAME_CREDIT, encodeCount(carried.id, limit));
  }
}
