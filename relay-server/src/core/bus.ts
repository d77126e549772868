/**
 * The hub's port to the other nodes of a cluster (docs/cluster.md, "More than one machine"). An
 * agent's node decides about its agent; a client of another node is a guest there. The hub tells
 * the bus what to send, and receives through `RemoteRouting` and `Guests`; it never waits
 * for the bus, and a message is handed over at most once.
 */
import type { ErrorCode } from "@blindrelay/protocol";
import type { Subject } from "@blindrelay/protocol/wire";
import type { Frame } from "./link.ts";

/** A client's connection, as other nodes know it. */
export interface Origin {
  readonly node: string;
  /** Given by that node, once. */
  readonly connection: number;
  readonly userId: string;
  readonly sessionHash: string;
  /** The session token that it renews, as a hash. */
  readonly renews?: string;
  /** It came in with an access key. A node of an older version does not say so. */
  readonly isKeyed: boolean;
}

/** An agent's link on another node, as this one knows it. */
export interface RemotePresence {
  readonly node: string;
  readonly loginNumber: number;
  readonly onlineSince: number;
  /** It has left its node, and no other node has announced it yet. */
  moving: boolean;
}

/** What a node reports about one of its agents; ages are in milliseconds, because clocks differ. */
export interface OnlineAgent {
  readonly agentId: string;
  readonly loginNumber: number;
  readonly onlineForMs: number;
}

/**
 * The fate of a message for another node: handed to the bus, which does not know yet whether a node
 * takes it; not sent, because there is no other node; or not sent, because the bus cannot take it
 * now.
 */
export type Dispatch = "sent" | "offline" | "unavailable";

/** What the hub asks of the bus. None of these calls the hub back before it returns. */
export interface BusPort {
  /**
   * A client's message to an agent that has no link here. If no node holds the agent,
   * `remoteRouting.nobody(ticket)` follows.
   */
  deliver(agentId: string, from: Omit<Origin, "node">, ticket: number, frame: Uint8Array): Dispatch;
  /** A message for a guest. `agentId`: of the agent that it comes from; null: the relay's own. */
  answer(to: Origin, frame: Frame, agentId: string | null): void;
  /** Whether `answer` may be called: the bus is connected and keeps up. */
  hasRoom(): boolean;
  /** Whether another node is known to accept new peers. */
  hasReadyNode(): boolean;
  /** A message from an agent of `node` was not delivered to its client here. */
  refuse(node: string, agentId: string, code: ErrorCode, subject: Subject): void;
  /** A guest was added; its node reports when it leaves. */
  welcome(guest: Origin): void;
  /** A client's connection is gone; `nodes` knew it as a guest. */
  leave(connection: number, nodes: Iterable<string>): void;
  /** A client's bindings, for the agent's new node; parts of sids as in `Bindings`. */
  bind(agentId: string, from: Omit<Origin, "node">, firsts: readonly string[]): void;
  /**
   * An agent has taken its place here: news for the nodes that do not know it. After a move others
   * do; those that took its node for lost have told their clients that it is offline.
   */
  agentOnline(userId: string, agent: OnlineAgent): void;
  /** An agent has lost its place here. `moving`: another node is about to take it. */
  agentOffline(userId: string, agentId: string, loginNumber: number, moving: boolean): void;
  /** A user now has clients here, or no longer has any. */
  clientsOnline(userId: string): void;
  clientsOffline(userId: string): void;
}

/** What a login must know about the agent's link on another node. */
export type Claim =
  /** There is none, or it did not answer. */
  | { readonly kind: "free" }
  /** It has ended in favour of this one. Ages are in milliseconds, because nodes' clocks differ. */
  | {
      readonly kind: "yielded";
      readonly onlineForMs: number;
      readonly takeoverAgesMs: readonly number[];
      /**
       * That node restarts and has sent the agent away, so this is no takeover. Absent if the node
       * runs an older version.
       */
      readonly isPlanned?: boolean;
    }
  /** It stays: there were too many takeovers lately, or it is the newer one. */
  | { readonly kind: "loop" }
  | { readonly kind: "superseded" };

export const FREE: Claim = { kind: "free" };

/** The bus, as seen by the process around the hub. */
export interface Bus extends BusPort {
  /** Whether another node is there or was there lately, and so may be ready soon. */
  expectsNode(): boolean;
  /** How many of the other nodes come before this one, in an order that all agree on. */
  rank(): number;
  /** Tells the other nodes now, and not within a second, whether this one accepts new peers. */
  sayReadiness(): void;
  /**
   * Asks the other nodes for an agent that logged in here, by the number of that login; answers
   * once, within bounded time, possibly before it returns.
   */
  claim(userId: string, agentId: string, loginNumber: number, answer: (claim: Claim) => void): void;
}

/** A relay without a cluster: no other node holds anything. */
export const ALONE: Bus = {
  deliver: () => "offline",
  answer: () => undefined,
  hasRoom: () => true,
  hasReadyNode: () => false,
  refuse: () => undefined,
  welcome: () => undefined,
  leave: () => undefined,
  bind: () => undefined,
  agentOnline: () => undefined,
  agentOffline: () => undefined,
  clientsOnline: () => undefined,
  clientsOffline: () => undefined,
  expectsNode: () => false,
  rank: () => 0,
  sayReadiness: () => undefined,
  claim: (_userId, _agentId, _loginNumber, answer) => answer(FREE),
};
