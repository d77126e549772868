/**
 * The virtual network: one `Wire` for each connection between a peer (a device or a client) and the
 * relay. Like TCP, a wire delivers in order and loses nothing until it breaks; latency, breaks and
 * speed are determined by the peer's `Conditions`.
 *
 *   peer --send--> latency, jitter --> (partition: parked) --> (relay paused: held) --> hub.receive
 *   peer <--received-- (corrupt) <-- (partition: parked) <-- bandwidth, slow reader <-- relay's
 *   link.send
 *
 * A break ends both sides (`cut`), one side (`halfOpen`: the relay does not notice), or silently
 * stops everything (`partition`).
 *
 * Nearly all traffic on idle links consists of the relay's pings and their answers. On a link that
 * rests (nothing but pings for a while, and no fault) they are omitted: the time when both would
 * arrive is a pure function of the peer and the ping's number, so the relay's count is reset at
 * once, the peer's core is told of the ping before it next reads its clock, and `wake` restores
 * what is in transit as soon as anything else happens. The resulting trace is the same.
 */

import type { Link, LinkEvents } from "@blindrelay/agent-sdk/ports";
import { PING_TEXT, PONG_TEXT } from "@blindrelay/protocol/wire";
import type { Connection, Frame, HubLink as RelayLink } from "@blindrelay/relay-server/core";
import type { Stream } from "../base/random-streams.ts";
import type { PlannedNetwork } from "../scenario/plan.ts";
import type { Clock, Happening } from "./clock.ts";
import { otherCharacter } from "./other-character.ts";

/** Bytes in the buffers of both kernels before a peer that does not read blocks the relay. */
const KERNEL_BYTES = 65_536;
/** An unanswered closing handshake ends after this long. */
const CLOSE_GRACE_US = 1_000_000;
/** The handshakes of TCP and WebSocket: the request arrives at the relay with the third message. */
const HANDSHAKE_WAYS = 3;
/**
 * A link rests after this long without a message: by then the relay's rate limit is full again,
 * too.
 */
const REST_AFTER_US = 5_000_000;
/** By then, the rate limit has recovered from a pong. */
const PONG_FELT_US = 1_000_000;
/** A ping and its answer are omitted only if they take less: long before the next ping. */
const MAX_PING_US = 10_000_000;

/** The current state of a peer's network. Counters, because faults overlap. */
export class Conditions {
  /** While positive, no link can be opened, and open ones are cut. */
  cut = 0;
  /** Nothing gets through. */
  partitioned = 0;
  /** The peer reads nothing. */
  stalled = 0;
  latencyUs: number;
  jitterUs: number;
  bytesPerS: number;
  /** Share of the messages to and from the relay, in parts of 2^32. */
  corrupt = 0;
  /** The relay's pings to this peer so far, on all its links. */
  pings = 0;
  readonly wires = new Set<Wire>();

  constructor(network: PlannedNetwork) {
    this.latencyUs = network.latencyUs;
    this.jitterUs = network.jitterUs;
    this.bytesPerS = network.bytesPerS;
  }
}

/** A peer, as seen by the network. */
export interface Peer {
  readonly id: string;
  readonly address: string;
  readonly conditions: Conditions;
  readonly netDraws: Stream;
  /** Determines the delays of its pings. */
  readonly pingSalt: number;
  /** Its link no longer rests (absent: it never does), so it must keep time itself again. */
  woken?(): void;
}

/**
 * What a hostile relay does with a text in transit to a peer: returns the texts that replace it.
 */
export type Meddler = (wire: Wire, text: string) => readonly string[];

/** The relay, as seen by the network. */
export interface Station {
  /** Whether its port answers. */
  readonly isUp: boolean;
  hasRoom(address: string): boolean;
  accept(wire: Wire): Connection;
  receive(connection: Connection, text: string, frame: Uint8Array): void;
  closed(connection: Connection): void;
  /** The kernels do not accept everything that is sent to it. */
  queues(connection: Connection): void;
  meddle(wire: Wire, text: string): readonly string[];
}

/** Observes the network. */
export interface Observer {
  trace(what: string, who: string, text: string): void;
  /** A peer passes a text to its link. */
  atPeer(wire: Wire, text: string): void;
  /** The network changed `before`, which a peer sends or is sent, into `after`. */
  corrupted(peer: Peer, before: string, after: string): void;
  /** A text has reached the relay, or leaves it. */
  atRelay(wire: Wire, text: string, direction: "up" | "down"): void;
  /** What was just delivered may have started asynchronous work. */
  stir(): void;
}

type Side = "open" | "closing" | "gone";

/** What a link without unlimited bandwidth transmits, one after another. */
interface Transmission {
  /** Bytes that have not left yet, when the current one began or the bandwidth changed. */
  left: number;
  arrive(): void;
}

export class Wire implements Link {
  readonly peer: Peer;
  /** A number of its own, from 1. */
  readonly number: number;
  /** As traces call it. */
  private readonly name: string;
  /** Who authenticated on it, for the oracles. */
  session: unknown = null;
  private readonly net: Net;
  private readonly events: LinkEvents;
  private connection: Connection | null = null;
  private here: Side = "open";
  private there: Side = "gone";
  /** Nothing that the relay sends arrives any more, and it does not know. */
  private deaf = false;
  private paused = false;
  private held: string[] = [];
  /** The latest arrivals, so that nothing is overtaken. */
  private lastUpUs = 0;
  private lastDownUs = 0;
  /** What waits for bandwidth; the first one is being transmitted. */
  private readonly leaving: Transmission[] = [];
  private leavingBytes = 0;
  /** Since when the first one is transmitted, how fast, and its end. */
  private paceFromUs = 0;
  private bytesPerS = 0;
  private pacing: Happening | null = null;
  /** What waits for the end of a partition, in order. */
  private parked: (() => void)[] = [];
  /** What a stalled reader has not read. */
  private unread: string[] = [];
  private unreadBytes = 0;
  /** The number of the ping that arrives: its answer is sent with it. */
  private answering = 0;
  /**
   * The latest omitted ping: its number, its arrival and that of its answer; 0 if there was none.
   */
  private pingNumber = 0;
  private pingDownUs = 0;
  private pingUpUs = 0;
  /** The process at the relay's end is frozen: no ping comes. */
  isFrozen = false;
  /** The relay's count of unanswered pings, if it had not been reset. */
  private unanswered = 0;
  /** The latest omitted ping that the peer's core has not been told of. */
  private unheardUs = -1;

  constructor(net: Net, peer: Peer, number: number, events: LinkEvents) {
    this.net = net;
    this.peer = peer;
    this.number = number;
    this.name = `${peer.id}#${number}`;
    this.events = events;
    peer.conditions.wires.add(this);
    if (peer.conditions.cut > 0) {
      this.here = "closing";
      net.clock.at(net.clock.nowUs + 1000, failed, this, "network is unreachable");
      return;
    }
    this.up(HANDSHAKE_WAYS, arrive, "");
  }

  // ---- the peer's end

  send(text: string): void {
    if (this.here !== "open" || this.there === "gone" || this.answering < 0) return;
    this.net.observer.atPeer(this, text);
    const sent = this.maybeCorrupt(text);
    if (sent === PONG_TEXT && this.answering > 0) {
      const jitter = this.pingJitter(this.answering, 1);
      this.up(1, deliverUp, sent, jitter, this.pongPlace());
      return;
    }
    this.wake();
    this.up(1, deliverUp, sent);
  }

  close(code: number, reason: string): void {
    if (this.here !== "open") return;
    this.wake();
    this.here = "closing";
    this.net.observer.trace("close", this.who(), `${code} ${reason}`);
    if (this.there === "open" && !this.deaf) this.up(1, peerClosed, "");
    const rtt = 2 * this.peer.conditions.latencyUs;
    const wait =
      this.peer.conditions.partitioned > 0 ? CLOSE_GRACE_US : Math.min(rtt, CLOSE_GRACE_US);
    this.net.clock.at(this.net.clock.nowUs + wait, ended, this, `${code} ${reason}`);
  }

  queuedBytes(): number {
    return 0;
  }

  // ---- the relay's end, used by `relayEnd`

  relaySend(frame: Frame): void {
    if (this.there !== "open") return;
    if (frame === PING_TEXT) {
      this.relayPing();
      return;
    }
    this.wake();
    const text = typeof frame === "string" ? frame : latin1(frame);
    this.net.observer.atRelay(this, text, "down");
    for (const one of this.net.station.meddle(this, text)) this.relayWrite(one);
  }

  private relayPing(): void {
    const { conditions } = this.peer;
    conditions.pings += 1;
    if (this.rests()) {
      const { connection } = this;
      const { nowUs } = this.net.clock;
      const number = conditions.pings;
      const downUs = nowUs + conditions.latencyUs + this.pingJitter(number, 0);
      const upUs = downUs + conditions.latencyUs + this.pingJitter(number, 1);
      if (upUs - nowUs < MAX_PING_US && connection !== null && connection.held === null) {
        if (this.pingNumber > 0) this.unheardUs = this.pingDownUs;
        this.pingNumber = number;
        this.pingDownUs = downUs;
        this.pingUpUs = upUs;
        this.lastDownUs = downUs;
        this.unanswered = connection.pingsUnanswered;
        connection.pingsUnanswered = 0;
        return;
      }
    }
    this.wake();
    this.net.observer.atRelay(this, PING_TEXT, "down");
    this.relayWrite(PING_TEXT);
  }

  /** Whether there is nothing but pings, and nothing affects them. */
  rests(): boolean {
    const { conditions, woken } = this.peer;
    const { nowUs } = this.net.clock;
    return (
      this.net.restful &&
      woken !== undefined &&
      this.here === "open" &&
      this.there === "open" &&
      !this.isFrozen &&
      !this.deaf &&
      !this.paused &&
      this.lastUpUs + REST_AFTER_US <= nowUs &&
      this.lastDownUs + REST_AFTER_US <= nowUs &&
      conditions.cut === 0 &&
      conditions.partitioned === 0 &&
      conditions.stalled === 0 &&
      conditions.bytesPerS === 0 &&
      conditions.corrupt === 0 &&
      this.held.length === 0 &&
      this.parked.length === 0 &&
      this.unread.length === 0 &&
      this.leaving.length === 0
    );
  }

  /** Something happens here: omitted pings that may still be noticed take place. */
  wake(): void {
    const { clock } = this.net;
    const { nowUs } = clock;
    const { pingNumber: number, pingDownUs, pingUpUs } = this;
    if (number > 0) {
      this.pingNumber = 0;
      const { connection } = this;
      if (nowUs >= pingDownUs) this.unheardUs = pingDownUs;
      const feltUs = pingUpUs + PONG_FELT_US;
      if (connection !== null && nowUs < feltUs) connection.pingsUnanswered = this.unanswered;
      if (nowUs < pingDownUs) {
        clock.at(pingDownUs, deliverPing, this, number, this.pingPlace());
      } else if (nowUs < pingUpUs) {
        this.lastUpUs = pingUpUs;
        clock.at(pingUpUs, deliverUp, this, PONG_TEXT, this.pongPlace());
      } else if (nowUs < feltUs) {
        clock.past(pingUpUs, () => this.deliverUp(PONG_TEXT));
      }
    }
    this.hear();
    this.peer.woken?.();
  }

  /** Tells the peer's core of the latest omitted ping that has arrived. */
  hear(): void {
    const { clock } = this.net;
    if (this.pingNumber > 0 && clock.nowUs >= this.pingDownUs) this.unheardUs = this.pingDownUs;
    const { unheardUs } = this;
    if (unheardUs < 0) return;
    this.unheardUs = -1;
    if (this.here !== "open") return;
    // Its answer was omitted with it.
    this.answering = -1;
    clock.past(unheardUs, () => this.events.received(PING_TEXT));
    this.answering = 0;
  }

  /** In microseconds; `way`: 0 down, 1 up. */
  private pingJitter(number: number, way: number): number {
    const { jitterUs } = this.peer.conditions;
    if (jitterUs === 0) return 0;
    let h = Math.imul(this.peer.pingSalt ^ (2 * number + way), 0xcc9e2d51);
    h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return Math.floor((((h ^ (h >>> 16)) >>> 0) / 2 ** 32) * (jitterUs + 1));
  }

  private pingPlace(): number {
    return 2 * this.number;
  }

  private pongPlace(): number {
    return 2 * this.number + 1;
  }

  relayPause(): void {
    this.wake();
    this.paused = true;
  }

  relayResume(): void {
    this.paused = false;
    if (this.held.length > 0) this.net.clock.at(this.net.clock.nowUs, releaseHeld, this, null);
  }

  private relayWrite(text: string): void {
    if (this.deaf) return;
    if (this.peer.conditions.stalled > 0 || this.unread.length > 0) {
      this.unread.push(text);
      this.unreadBytes += text.length;
      if (this.connection !== null) this.net.station.queues(this.connection);
      return;
    }
    const sent = this.maybeCorrupt(text);
    if (sent === PING_TEXT) {
      const { pings } = this.peer.conditions;
      this.down(deliverPing, pings, sent.length, this.pingJitter(pings, 0), this.pingPlace());
    } else this.write(sent);
  }

  private write(text: string): void {
    this.down(deliverDown, text, text.length);
  }

  relayQueued(): number {
    // The relay asks before each message, and most links were never slow.
    if (this.leaving.length === 0 && this.unreadBytes === 0) return 0;
    const waiting = this.leavingBytes - this.pacedBytes();
    return Math.max(0, Math.ceil(this.unreadBytes + waiting) - KERNEL_BYTES);
  }

  relayClose(code: number, reason: string): void {
    if (this.there !== "open") return;
    this.wake();
    this.there = "closing";
    const { clock } = this.net;
    const reaches = !this.deaf && this.peer.conditions.stalled === 0;
    if (reaches) this.write(`\u0000${code} ${reason}`);
    const rtt = 2 * this.peer.conditions.latencyUs;
    const wait = reaches && this.peer.conditions.partitioned === 0 ? rtt : CLOSE_GRACE_US;
    const lastUs = reaches ? Math.max(this.lastDownUs, clock.nowUs + this.leavesInUs()) : 0;
    clock.at(Math.max(clock.nowUs + wait, lastUs), relayGone, this, null);
  }

  get isOpenAtRelay(): boolean {
    return this.there === "open" && !this.deaf;
  }

  // ---- called by faults

  /** Both ends notice at once; data in transit is lost. */
  cut(reason: string): void {
    this.wake();
    this.failHere(reason);
    this.goneThere();
  }

  /** The peer's end is gone, and the relay does not notice. */
  halfOpen(reason: string): void {
    this.wake();
    this.deaf = true;
    this.failHere(reason);
  }

  /** The peer lost its power: its end sends nothing any more. */
  vanish(): void {
    this.wake();
    this.deaf = true;
    this.here = "gone";
    this.leave();
  }

  /** The relay's process crashed: its end is gone, and the peer's kernel is notified. */
  relayDied(): void {
    this.wake();
    this.there = "gone";
    this.connection = null;
    if (this.here === "open") {
      this.here = "closing";
      const at = this.net.clock.nowUs + this.peer.conditions.latencyUs;
      this.net.clock.at(at, failed, this, "the connection was reset");
    }
    this.leave();
  }

  /** The bandwidth is another one from now on, for what already waits too. */
  paceChanged(): void {
    const [first] = this.leaving;
    if (first === undefined) return;
    const done = this.pacedBytes();
    first.left -= done;
    this.leavingBytes -= done;
    if (this.pacing !== null) this.net.clock.cancel(this.pacing);
    this.transmit();
  }

  /** Releases what a partition held back. */
  healed(): void {
    const { parked } = this;
    this.parked = [];
    for (const go of parked) go();
  }

  /** The reader reads again. */
  readAgain(): void {
    if (this.peer.conditions.stalled > 0) return;
    const { unread } = this;
    this.unread = [];
    this.unreadBytes = 0;
    for (const text of unread) this.write(this.maybeCorrupt(text));
  }

  who(): string {
    return this.name;
  }

  // ---- in transit

  private up(
    ways: number,
    act: (wire: Wire, text: string) => void,
    text: string,
    jitter = this.jitter(),
    place?: number,
  ): void {
    const { clock } = this.net;
    const { latencyUs } = this.peer.conditions;
    const at = Math.max(this.lastUpUs, clock.nowUs + ways * latencyUs + jitter);
    this.lastUpUs = at;
    clock.at(at, act, this, text, place);
  }

  private down<What>(
    act: (wire: Wire, what: What) => void,
    what: What,
    bytes: number,
    jitter = this.jitter(),
    place?: number,
  ): void {
    const { clock } = this.net;
    const arrive = (): void => {
      const at = Math.max(this.lastDownUs, clock.nowUs + this.peer.conditions.latencyUs + jitter);
      this.lastDownUs = at;
      clock.at(at, act, this, what, place);
    };
    if (this.peer.conditions.bytesPerS === 0 && this.leaving.length === 0) {
      arrive();
      return;
    }
    this.leaving.push({ left: bytes, arrive });
    this.leavingBytes += bytes;
    if (this.connection !== null) this.net.station.queues(this.connection);
    if (this.leaving.length === 1) this.transmit();
  }

  /** Transmits the first of what waits for bandwidth; all of it at once if that is unlimited. */
  private transmit(): void {
    const { clock } = this.net;
    this.pacing = null;
    this.bytesPerS = this.peer.conditions.bytesPerS;
    this.paceFromUs = clock.nowUs;
    for (let [first] = this.leaving; first !== undefined; [first] = this.leaving) {
      if (this.bytesPerS > 0 && first.left > 0) {
        const us = Math.ceil((first.left * 1e6) / this.bytesPerS);
        this.pacing = clock.at(clock.nowUs + us, transmitted, this, null);
        return;
      }
      this.transmitted();
    }
  }

  private transmitted(): void {
    const first = this.leaving.shift() as Transmission;
    this.leavingBytes -= first.left;
    first.arrive();
  }

  /** The first one has left completely. */
  transmitNext(): void {
    this.transmitted();
    this.transmit();
  }

  /** What has left of the first one since it is transmitted at this pace. */
  private pacedBytes(): number {
    const [first] = this.leaving;
    if (first === undefined) return 0;
    const paced = ((this.net.clock.nowUs - this.paceFromUs) * this.bytesPerS) / 1e6;
    return Math.min(first.left, paced);
  }

  /** How long all that waits takes at the present pace. */
  private leavesInUs(): number {
    if (this.leaving.length === 0) return 0;
    const { latencyUs, jitterUs } = this.peer.conditions;
    const bytes = this.leavingBytes - this.pacedBytes();
    return Math.ceil((bytes * 1e6) / this.bytesPerS) + latencyUs + jitterUs;
  }

  private jitter(): number {
    const { conditions, netDraws } = this.peer;
    return conditions.jitterUs > 0 ? netDraws.below(conditions.jitterUs + 1) : 0;
  }

  /** Whether arrivals have to wait for the end of a partition, in `parked`. */
  private get waits(): boolean {
    return this.peer.conditions.partitioned > 0 || this.parked.length > 0;
  }

  private maybeCorrupt(text: string): string {
    const { corrupt } = this.peer.conditions;
    if (corrupt === 0 || this.peer.netDraws.next() >= corrupt || text.startsWith("\u0000"))
      return text;
    const at = this.peer.netDraws.below(text.length);
    const other = otherCharacter(text.charAt(at), 33 + this.peer.netDraws.below(94));
    this.net.corrupted += 1;
    const after = text.slice(0, at) + other + text.slice(at + 1);
    this.net.observer.corrupted(this.peer, text, after);
    return after;
  }

  arrive(): void {
    if (this.waits) {
      this.parked.push(() => this.arrive());
      return;
    }
    if (this.here !== "open") return;
    const { station, observer, clock } = this.net;
    if (!station.isUp || !station.hasRoom(this.peer.address)) {
      this.here = "closing";
      const reason = station.isUp ? "HTTP 503" : "connection refused";
      clock.at(clock.nowUs + this.peer.conditions.latencyUs, failed, this, reason);
      return;
    }
    observer.trace("connect", this.who(), this.peer.address);
    this.there = "open";
    this.connection = station.accept(this);
    this.write("\u0001");
  }

  deliverUp(text: string): void {
    if (this.waits) {
      this.parked.push(() => this.deliverUp(text));
      return;
    }
    if (this.there !== "open" || this.connection === null) return;
    if (this.paused) {
      this.held.push(text);
      return;
    }
    this.receive(this.connection, text);
  }

  private receive(connection: Connection, text: string): void {
    const { observer, station } = this.net;
    observer.trace("up", this.who(), text);
    observer.atRelay(this, text, "up");
    station.receive(connection, text, Buffer.from(text, "latin1"));
  }

  releaseHeld(): void {
    while (!this.paused && this.held.length > 0 && this.there === "open") {
      this.receive(this.connection as Connection, this.held.shift() as string);
    }
  }

  deliverDown(text: string): void {
    if (this.waits) {
      this.parked.push(() => this.deliverDown(text));
      return;
    }
    if (this.here !== "open") return;
    const { observer } = this.net;
    if (text === "\u0001") {
      this.events.opened();
    } else if (text.startsWith("\u0000")) {
      this.here = "closing";
      this.ended(text.slice(1));
    } else {
      observer.trace("down", this.who(), text);
      this.events.received(text);
    }
    if (this.peer.woken === undefined) observer.stir();
  }

  deliverPing(number: number): void {
    if (this.waits) {
      this.parked.push(() => this.deliverPing(number));
      return;
    }
    this.answering = number;
    this.deliverDown(PING_TEXT);
    this.answering = 0;
  }

  /** The peer's close frame has arrived. */
  peerClosed(): void {
    if (this.waits) this.parked.push(() => this.peerClosed());
    else this.goneThere();
  }

  ended(how: string): void {
    if (this.here === "gone") return;
    this.here = "gone";
    const code = Number.parseInt(how, 10);
    this.net.observer.trace("closed", this.who(), how);
    this.leave();
    this.events.closed(code, how.slice(String(code).length + 1));
    this.net.observer.stir();
  }

  goneThere(): void {
    if (this.there === "gone") return;
    this.there = "gone";
    const { connection } = this;
    this.connection = null;
    this.held = [];
    this.leave();
    if (connection !== null) this.net.station.closed(connection);
  }

  private failHere(reason: string): void {
    if (this.here !== "open") return;
    this.here = "closing";
    this.net.clock.at(this.net.clock.nowUs, failed, this, reason);
  }

  private leave(): void {
    if (this.here === "gone" && this.there === "gone") this.peer.conditions.wires.delete(this);
  }
}

/** The relay's end of a wire, as the hub sees it. */
export const relayEnd = (wire: Wire): RelayLink => ({
  send: (frame) => wire.relaySend(frame),
  queued: () => wire.relayQueued(),
  close: (code, reason) => wire.relayClose(code, reason),
  pause: () => wire.relayPause(),
  resume: () => wire.relayResume(),
});

export class Net {
  readonly clock: Clock;
  readonly station: Station;
  readonly observer: Observer;
  /** Whether links may rest. */
  readonly restful: boolean;
  corrupted = 0;
  private wires = 0;

  constructor(clock: Clock, station: Station, observer: Observer, restful: boolean) {
    this.restful = restful;
    this.clock = clock;
    this.station = station;
    this.observer = observer;
  }

  connect(peer: Peer, events: LinkEvents): Wire {
    this.wires += 1;
    return new Wire(this, peer, this.wires, events);
  }
}

const arrive = (wire: Wire): void => wire.arrive();
const deliverUp = (wire: Wire, text: string): void => wire.deliverUp(text);
const deliverDown = (wire: Wire, text: string): void => wire.deliverDown(text);
const deliverPing = (wire: Wire, number: number): void => wire.deliverPing(number);
const transmitted = (wire: Wire): void => wire.transmitNext();
const peerClosed = (wire: Wire): void => wire.peerClosed();
const relayGone = (wire: Wire): void => wire.goneThere();
const releaseHeld = (wire: Wire): void => wire.releaseHeld();
const ended = (wire: Wire, how: string): void => wire.ended(how);
const failed = (wire: Wire, reason: string): void => wire.ended(`1006 ${reason}`);

const latin1 = (frame: Uint8Array): string =>
  Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString("latin1");
