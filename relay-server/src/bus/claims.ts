/**
 * An agent that logs in here is claimed from the node that has its earlier link. That node yields
 * it, with its sessions, or says why the earlier link stays.
 */
import { type Claim, FREE, type Origin } from "../core/bus.ts";
import type { Hub } from "../core/hub.ts";
import { BINDINGS_BYTES } from "./bodies.ts";
import type { Holding, Holdings } from "./holdings.ts";
import type { Subjects } from "./subjects.ts";

/**
 * A node that has not answered a claim by then counts as gone; it is told when it resumes. NATS
 * reports a killed node at once, so only a frozen node makes others wait this long, and a busy one
 * has the time to hand over the agent's sessions.
 */
export const CLAIM_TIMEOUT_MS = 1000;
/** Long enough to read what is in the sockets, even on a busy machine. */
const YIELD_MS = 25;
/** How often to wait again while messages from the agent wait for their turn. */
const MAX_YIELD_WAITS = 24;

/** Parts of sids that lead from one client to an agent. */
type Bound = Omit<Origin, "isKeyed"> & {
  /** Absent if it came in without an access key, or the node runs an older version. */
  readonly isKeyed?: boolean;
  readonly firsts: readonly string[];
};

/** A node's answer to a claim, with the sessions that lead to the agent. */
type ClaimAnswer = Claim & { readonly bindings?: readonly Bound[] };

interface PendingClaim {
  readonly userId: string;
  readonly agentId: string;
  readonly loginNumber: number;
  readonly answer: (claim: Claim) => void;
  readonly cancel: () => void;
}

interface ClaimsParts {
  readonly subjects: Subjects;
  readonly holdings: Holdings;
  readonly hub: () => Hub;
  readonly nowMs: () => number;
  /** The agent was yielded, but has no place here any more: it is nowhere. */
  readonly onLost: (userId: string, agentId: string, loginNumber: number) => void;
}

export class Claims {
  readonly #parts: ClaimsParts;
  readonly #pending = new Map<string, PendingClaim>();
  #last = 0;

  constructor(parts: ClaimsParts) {
    this.#parts = parts;
  }

  get pending(): number {
    return this.#pending.size;
  }

  /** Without responders the agent is free. An agent that is already here needs no claim. */
  claim(
    userId: string,
    agentId: string,
    loginNumber: number,
    answer: (claim: Claim) => void,
  ): void {
    const { subjects, holdings } = this.#parts;
    if (!subjects.isUp || holdings.isHere(agentId)) {
      answer(FREE);
      return;
    }
    holdings.stopForwarding(agentId);
    this.#last += 1;
    const token = `c${this.#last}`;
    const cancel = subjects.after(CLAIM_TIMEOUT_MS, () => this.answered(token, null));
    this.#pending.set(token, { userId, agentId, loginNumber, answer, cancel });
    subjects.request(`a.${agentId}`, ["claim", subjects.node, loginNumber], token);
  }

  /** `said`: the answer of the node that had the agent; null: there was none. */
  answered(token: string, said: ClaimAnswer | null): void {
    const { holdings, onLost } = this.#parts;
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    this.#pending.delete(token);
    const { userId, agentId, loginNumber, answer, cancel } = pending;
    cancel();
    // A node that restarts forwards messages even if the agent had already left it.
    if (said?.kind === "yielded" || said?.kind === "free") {
      holdings.whileForwarded(agentId, () => answer(said));
    } else answer(said ?? FREE);
    if (said?.kind !== "yielded") return;
    if (holdings.isHere(agentId)) this.#bind(agentId, said.bindings ?? []);
    // It left, or was refused, after the other node had let it go.
    else onLost(userId, agentId, loginNumber);
  }

  /** Another node claims an agent that is, or was, here. */
  claimedBy(
    agentId: string,
    holding: Holding,
    node: string,
    loginNumber: number,
    replyTo: string | null,
  ): void {
    const { subjects, holdings, hub, nowMs } = this.#parts;
    this.#onceRead(agentId, () => {
      const bindings = this.#bindingsOf(agentId, holding.userId);
      const claim = hub().claimAgent(agentId, node, loginNumber, nowMs());
      if (claim.kind === "yielded" || claim.kind === "free") {
        holdings.moveTo(agentId, holding, node, loginNumber);
      }
      const said = claim.kind === "yielded" ? { ...claim, bindings } : claim;
      subjects.reply(replyTo, ["claimed"], JSON.stringify(said));
    });
  }

  /** What the agent said on its old link before it said hello on the new one is read first. */
  #onceRead(agentId: string, goOn: () => void): void {
    const { subjects, hub } = this.#parts;
    const wait = (times: number) =>
      subjects.after(YIELD_MS, () => {
        if (times > 0 && hub().hasHeld(agentId)) wait(times - 1);
        else goOn();
      });
    if (hub().isOnline(agentId)) wait(MAX_YIELD_WAITS);
    else goOn();
  }

  /** Which sessions lead to an agent, so that its new node can deliver its messages at once. */
  #bindingsOf(agentId: string, userId: string): Bound[] {
    const { subjects, hub } = this.#parts;
    const bindings: Bound[] = [];
    let room = BINDINGS_BYTES;
    for (const { node, isKeyed, ...origin } of hub().guests.bindingsOf(userId, agentId)) {
      const bound = { ...origin, ...(isKeyed && { isKeyed }), node: node ?? subjects.node };
      room -= JSON.stringify(bound).length + 1;
      if (room < 0) break;
      bindings.push(bound);
    }
    return bindings;
  }

  #bind(agentId: string, bindings: readonly Bound[]): void {
    const { subjects, hub, nowMs } = this.#parts;
    for (const { firsts, isKeyed = false, ...origin } of bindings) {
      // This node's own clients have bound theirs here.
      if (origin.node === subjects.node) continue;
      hub().guests.bind({ ...origin, isKeyed }, agentId, firsts, nowMs());
    }
  }
}
