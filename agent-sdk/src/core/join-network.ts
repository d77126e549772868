/**
 * A network, such as Wi-Fi, that must be joined before the relay can be reached. It is joined when
 * the link connects, and again after it was lost. The wait in between is the link's back-off
 * (backoff.ts): 1 s doubling to 60 s, with jitter. That also applies to a refused password, because
 * chips report one if the signal is weak.
 *
 *   apart --connect--> joining --joined--> joined
 *     ^                   |                   |
 *     +-- failed, late ---+-- lost, useless --+
 *
 * A driver may never report `lost` if its modem loses power, so a few links in a row that do not
 * open count as a loss.
 *
 * An event that the table does not list is ignored, such as a driver's `lost` for each attempt, or
 * a link that connects again while the network is still being joined.
 *
 * [portable]
 */
import type { Link, LinkEvents, LinkPort, Log, TimerPort } from "../ports.ts";
import { JOIN_TIMEOUT_MS, USELESS_LINKS } from "./defaults.ts";

type NetworkState = "apart" | "joining" | "joined";
type NetworkEvent = "connect" | "joined" | "failed" | "late" | "lost" | "useless";

const NETWORK_STATES: {
  readonly [state in NetworkState]: { readonly [event in NetworkEvent]?: NetworkState };
} = {
  apart: { connect: "joining" },
  joining: { joined: "joined", failed: "apart", late: "apart" },
  joined: { lost: "apart", useless: "apart" },
};

/** The driver of a network. */
export interface NetworkPort {
  /**
   * Joins the network, and calls `done` with null once there is an address, or with the problem and
   * its fix. May throw.
   */
  join(done: (problem: string | null) => void): void;
  /** Calls `fn` whenever the network is lost. Called once. */
  onLost(fn: () => void): void;
}

interface NetworkOptions {
  /** For people, such as `Wi-Fi "hall 7"`. */
  readonly name: string;
  readonly network: NetworkPort;
  /** The links that run over it. */
  readonly links: LinkPort;
  readonly timer: TimerPort;
  readonly log: Log;
}

/** A link that waits for the network and then runs over it. */
class NetworkLink implements Link {
  declare readonly url: string;
  declare readonly events: LinkEvents;
  declare private readonly options: NetworkOptions;
  private inner: Link | null = null;
  ended = false;

  constructor(options: NetworkOptions, url: string, events: LinkEvents) {
    this.options = options;
    this.url = url;
    this.events = events;
  }

  /** The network is there. */
  open(): void {
    this.inner = this.options.links.connect(this.url, this.events);
  }

  send(text: string): void {
    if (this.inner !== null) this.inner.send(text);
  }

  close(code: number, reason: string): void {
    if (this.inner !== null) this.inner.close(code, reason);
    else if (!this.ended) this.options.timer.set(0, () => this.events.closed(code, reason));
    this.ended = true;
  }
}

/** A LinkPort over a network that it joins first. One link at a time. */
export class NetworkLinks implements LinkPort {
  state: NetworkState = "apart";
  /** Why the network is not joined, and the fix; null if unknown. */
  advice: string | null = null;
  declare private readonly options: NetworkOptions;
  private link: NetworkLink | null = null;
  /** Counts attempts, so that a late answer is ignored. */
  private turn = 0;
  private lateAt = 0;
  /** Links in a row that did not open. */
  private unopened = 0;

  constructor(options: NetworkOptions) {
    this.options = options;
  }

  connect(url: string, events: LinkEvents): Link {
    const link = new NetworkLink(this.options, url, {
      opened: () => {
        this.unopened = 0;
        events.opened();
      },
      received: events.received,
      closed: events.closed,
    });
    this.link = link;
    if (this.unopened >= USELESS_LINKS && this.move("useless"))
      this.warn(`${this.options.name} carries nothing`);
    if (this.state === "joined") this.open(link);
    else this.join();
    return link;
  }

  private join(): void {
    const options = this.options;
    const now = options.timer.now();
    if (now >= this.lateAt && this.move("late"))
      this.warn(`${options.name}: its driver has not answered for ${JOIN_TIMEOUT_MS / 1000} s`);
    if (!this.move("connect")) return;
    this.lateAt = now + JOIN_TIMEOUT_MS;
    this.turn++;
    const turn = this.turn;
    const done = (problem: string | null): void => {
      options.timer.set(0, () => this.joined(turn, problem));
    };
    try {
      if (turn === 1) options.network.onLost(() => this.lost());
      options.network.join(done);
    } catch (thrown) {
      done(`${options.name} cannot be joined: ${thrown}`);
    }
  }

  private joined(turn: number, problem: string | null): void {
    const options = this.options;
    if (turn !== this.turn || !this.move(problem === null ? "joined" : "failed")) return;
    if (problem === null) {
      options.log("info", `${options.name} is joined`);
      this.advice = null;
      this.unopened = 0;
    } else this.warn(problem);
    if (this.link === null) return;
    if (problem === null) this.open(this.link);
    else this.link.close(1006, ""); // its own advice says why
  }

  private open(link: NetworkLink): void {
    if (link.ended) return;
    this.unopened++;
    link.open();
  }

  private lost(): void {
    if (!this.move("lost")) return;
    this.warn(`${this.options.name} was lost`);
    if (this.link !== null) this.link.close(4000, "network lost");
  }

  /** Logs the same advice only once. */
  private warn(advice: string): void {
    if (advice !== this.advice) this.options.log("warn", advice);
    this.advice = advice;
  }

  /** Takes the event's step in the table; false if it has none. */
  private move(event: NetworkEvent): boolean {
    const next = NETWORK_STATES[this.state][event];
    if (next === undefined) return false;
    this.state = next;
    return true;
  }
}
