/**
 * What must hold across all nodes of a cluster: an agent has one link, a session token sends at
 * most 10,000 requests, and no packet reaches another user's peers.
 */
import { SESSION_MAX_REQUESTS } from "@blindrelay/protocol";

export type ClusterOracleName = "one-link" | "requests" | "owners";

/**
 * How long two nodes may both hold an agent while the bus works: a claim waits 300 ms for its
 * answer, and the older link for what is still being read from it.
 */
const TWO_LINKS_US = 2_000_000;

/** A packet, bare or in an envelope, where its quotes are escaped. */
const PACKET = /\\?"sid\\?":\\?"([^"\\]+)\\?",\\?"seq\\?":(\d+)/;
const SESSION = /"session_token":"([^"]+)"/;

/** The peers that send and receive on a wire. */
export interface Party {
  readonly id: string;
  readonly userId: string;
  readonly isAgent: boolean;
}

interface Sender {
  readonly userId: string;
  /** Its session token; "" with an agent. */
  readonly session: string;
}

export class ClusterOracle {
  private readonly violate: (oracle: ClusterOracleName, what: string) => void;
  /** The time since when two nodes hold an agent. */
  private readonly doubles = new Map<string, number>();
  private readonly sessionOf = new WeakMap<object, string>();
  /** Packets that no peer has received yet. */
  private readonly senders = new Map<string, Sender>();
  private readonly requests = new Map<string, number>();

  constructor(violate: (oracle: ClusterOracleName, what: string) => void) {
    this.violate = violate;
  }

  /** `held`: the nodes that hold each agent with a link; `isWell`: no fault is the cause. */
  links(
    held: Iterable<readonly [string, readonly string[]]>,
    isWell: boolean,
    nowUs: number,
  ): void {
    for (const [agentId, nodes] of held) {
      if (nodes.length < 2) {
        this.doubles.delete(agentId);
        continue;
      }
      const sinceUs = isWell ? (this.doubles.get(agentId) ?? nowUs) : nowUs;
      this.doubles.set(agentId, sinceUs);
      if (nowUs - sinceUs > TWO_LINKS_US) {
        this.violate("one-link", `${agentId} has had links on ${nodes.join(" and ")} for 2 s`);
      }
    }
  }

  /** A text arrived on a peer's wire. */
  received(wire: object, text: string, from: Party): void {
    const packet = packetIn(text);
    if (packet === null) return;
    const session = from.isAgent ? "" : (this.sessionOf.get(wire) ?? "");
    this.senders.set(`${from.isAgent} ${packet}`, { userId: from.userId, session });
  }

  /** A text that a node sends to a peer. */
  sent(wire: object, text: string, to: Party): void {
    const session = SESSION.exec(text)?.[1];
    if (session !== undefined) this.sessionOf.set(wire, session);
    const packet = packetIn(text);
    if (packet === null) return;
    const key = `${!to.isAgent} ${packet}`;
    const sender = this.senders.get(key);
    if (sender === undefined) return;
    this.senders.delete(key);
    if (sender.userId !== to.userId) {
      this.violate("owners", `${to.id} received a packet of the user ${sender.userId}`);
    }
    if (sender.session !== "") this.count(sender.session);
  }

  private count(session: string): void {
    const requests = (this.requests.get(session) ?? 0) + 1;
    this.requests.set(session, requests);
    if (requests > SESSION_MAX_REQUESTS) {
      this.violate("requests", `${requests} requests of one session token reached agents`);
    }
  }
}

const packetIn = (text: string): string | null => {
  const match = PACKET.exec(text);
  return match === null ? null : `${match[1]} ${match[2]}`;
};
