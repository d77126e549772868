/**
 * The hub's port to the other nodes of a cluster (docs/operations.md, "More than one machine"). An
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
}

/** An agent's link on another node, as this one knows it. */
export interface RemotePresence {
  readonly node: string;
  readonly loginNumber: number;
  readonly onlineSince: number;
  /** It has left its node, and no other node has announced it yet. */
  moving: boolean;
}

/** What a node says of one of its agents; the age in milliseconds, as clocks differ. */
export interface Sighted {
  readonly agentId: string;
  readonly loginNumber: number;
  readonly onlineForMs: number;
}

/**
 * What became of a message for another node: handed to the bus, which does not yet know whether a
 * node takes it; not sent, as there is no other node; not sent, as the bus cannot take it now.
 */
export type Dispatch = "sent" | "offline" | "unavailable";

/** What the hub asks of the bus. None of these calls the hub back before it returns. */
export interface BusPort {
  /**
   * A client's message to an agent that has no link here. Where no node holds the agent,
   * `remoteRouting.nobody(ticket)` follows.
   */
  deliver(agentId: string, from: Omit<Origin, "node">, ticket: number, frame: Uint8Array): Dispatch;
  /** A message for a guest: bytes of an agent, or the relay's own text. */
  answer(to: Origin, frame: Frame): void;
  /** Whether `answer` may be called: the bus is there and keeps up. */
  hasRoom(): boolean;
  /** A message of an agent of `node` was not delivered to its client here. */
  refuse(node: string, agentId: string, code: ErrorCode, subject: Subject): void;
  /** A guest was added; its node reports when it leaves. */
  welcome(guest: Origin): void;
  /** A client's connection is gone; `nodes` knew it as a guest. */
  leave(connection: number, nodes: Iterable<string>): void;
  /** A client's bindings, for the agent's new node; parts of sids as in `Bindings`. */
  bind(agentId: string, from: Omit<Origin, "node">, firsts: readonly string[]): void;
  /** An agent has its place here. `isNews`: it was online nowhere. */
  agentCame(userId: string, agent: Sighted, isNews: boolean): void;
  /** An agent has lost its place here. `moving`: another node is about to have it. */
  agentWent(userId: string, agentId: string, loginNumber: number, moving: boolean): void;
  /** A user has clients here, or has none any more. */
  clientsCame(userId: string): void;
  clientsWent(userId: string): void;
}

/** What a login must know of the agent's link on another node. */
export type Claim =
  /** There is none, or it did not answer. */
  | { readonly kind: "free" }
  /** It has ended for this one. Ages in milliseconds, as clocks of nodes differ. */
  | {
      readonly kind: "yielded";
      readonly onlineForMs: number;
      readonly takeoverAgesMs: readonly number[];
      /**
       * That node restarts and has sent the agent away: this is no takeover. Absent where the node
       * runs a version that does not say so.
       */
      readonly isPlanned?: boolean;
    }
  /** It stays: too many takeovers lately, or it is the newer one. */
  | { readonly kind: "loop" }
  | { readonly kind: "superseded" };

export const FREE: Claim = { kind: "free" };

/** The bus as the process around the hub has it. */
export interface Bus extends BusPort {
  /**
   * Asks the other nodes for an agent that logged in here, by the number of that login; answers
   * once, within bounded time, possibly before it returns.
   */
  claim(userId: string, agentId: string, loginNumber: number, answer: (claim: Claim) => void): void;
}

/** A relay that is alone: no other node holds anything. */
export const ALONE: Bus = {
  deliver: () => "offline",
  answer: () => undefined,
  hasRoom: () => true,
  refuse: () => undefined,
  welcome: () => undefined,
  leave: () => undefined,
  bind: () => undefined,
  agentCame: () => undefined,
  agentWent: () => undefined,
  clientsCame: () => undefined,
  clientsWent: () => undefined,
  claim: (_userId, _agentId, _loginNumber, answer) => answer(FREE),
};
