/**
 * The only way out of the client's core: a link to the relay, time, randomness, crypto, a log.
 * Each runtime's edge (node/, browser/) fills these; tests fill them with a virtual clock. All are
 * shared with the agent's core (protocol/src/ports.ts), so one in-memory world can hold both ends.
 */
import type { LinkPort, Log, Random, TimerPort } from "@blindrelay/protocol";
import type { Suite } from "@blindrelay/protocol/crypto";

export type { Link, LinkEvents, LinkPort, Log, Random, TimerPort } from "@blindrelay/protocol";

export interface Ports {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly suite: Suite;
  readonly log: Log;
}
