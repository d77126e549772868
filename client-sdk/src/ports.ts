/**
 * The client's core reaches the outside only through these ports. Each runtime's edge (node/,
 * browser/) implements them; tests use a virtual clock. They are shared with the agent's core
 * (protocol/src/ports.ts), so that one in-memory world can contain both ends.
 */
import type { LinkPort, Log, Random, TimerPort } from "@blindrelay/protocol";
import type { Suite, X25519 } from "@blindrelay/protocol/crypto";

export type { Link, LinkEvents, LinkPort, Log, Random, TimerPort } from "@blindrelay/protocol";

export interface Ports {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly suite: Suite;
  /** For packet versions "3" and "4". */
  readonly x25519: X25519;
  readonly log: Log;
}
