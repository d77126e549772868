/**
 * The agents with a link on this node, and those that have just left it for another one: each
 * message for an agent is received here, kept until earlier ones have arrived, or forwarded.
 */
import type { Origin } from "../core/bus.ts";
import type { Hub } from "../core/hub.ts";
import { ROUND_TICKS } from "./anti-entropy.ts";
import {
  AGENTS_PER_MESSAGE,
  Bodies,
  readBody,
  readCount,
  readFrame,
  readName,
  readOrigin,
} from "./bodies.ts";
import { type BusMessage, decodeBusMessage } from "./head.ts";
import type { Subjects } from "./subjects.ts";
import type { Delivery } from "./transport.ts";

/** The longest time for which a node forwards messages for an agent that has moved. */
const FORWARD_MS = 2000;
/** How often to look whether messages are still forwarded. */
const HAND_OVER_POLL_MS = 25;
/** Messages that wait for earlier ones, for one agent; and their bytes, over all agents. */
const MAX_EARLY = 256;
const MAX_EARLY_BYTES = 16_777_216;

export interface Holding {
  /** Number of the login that holds the agent, here or (`movedTo`) there. */
  loginNumber: number;
  readonly userId: string;
  /** The node that the agent has moved to; later messages are forwarded to it. */
  movedTo: string | null;
  /**
   * What arrived here while the previous node may still forward earlier messages; null: it does
   * not.
   */
  early: BusMessage[] | null;
  readonly unsubscribe: () => void;
}

interface HoldingsParts {
  readonly subjects: Subjects;
  readonly hub: () => Hub;
  /** Limit of a client's message. */
  readonly maxMessageBytes: number;
  readonly nowMs: () => number;
  /** The longest time to wait for messages that the previous node forwards. */
  readonly forwardedWithinMs: number;
  /** Another node claims an agent that is, or was, here. */
  readonly claimed: (
    agentId: string,
    holding: Holding,
    node: string,
    loginNumber: number,
    replyTo: string | null,
  ) => void;
}

export class Holdings {
  readonly #parts: HoldingsParts;
  readonly #byAgent = new Map<string, Holding>();
  /** Agents whose messages another node forwards from now on, until they have their place here. */
  readonly #passedOn = new Set<string>();
  /** Bytes in `early`, over all agents. */
  #earlyBytes = 0;
  #ticks = 0;

  constructor(parts: HoldingsParts) {
    this.#parts = parts;
  }

  /** Whether the agent has its place here, and has not moved away. */
  isHere(agentId: string): boolean {
    return this.#byAgent.get(agentId)?.movedTo === null;
  }

  /** An agent has taken its place here. */
  add(agentId: string, userId: string, loginNumber: number): void {
    const known = this.#byAgent.get(agentId);
    if (known === undefined) {
      const unsubscribe = this.#parts.subjects.listen(`a.${agentId}`, (delivery) => {
        const holding = this.#byAgent.get(agentId);
        if (holding !== undefined) this.#toAgent(agentId, holding, delivery);
      });
      const holding = { loginNumber, userId, movedTo: null, early: null, unsubscribe };
      this.#byAgent.set(agentId, holding);
    } else {
      Object.assign(known, { loginNumber, userId, movedTo: null });
    }
    if (this.#passedOn.delete(agentId)) this.#awaitPassed(agentId);
    this.#announce(agentId, loginNumber);
  }

  /** The link of that login, or of an earlier one, is gone, and no other node takes the agent. */
  remove(agentId: string, loginNumber: number): void {
    const holding = this.#byAgent.get(agentId);
    if (holding === undefined || holding.movedTo !== null) return;
    if (holding.loginNumber > loginNumber) return;
    this.#letGo(agentId, holding);
  }

  /** From now on messages go to `node`, until it has its subscription. */
  moveTo(agentId: string, holding: Holding, node: string, loginNumber: number): void {
    Object.assign(holding, { loginNumber, movedTo: node });
    this.#parts.subjects.after(FORWARD_MS, () => this.#stopForwarding(agentId, holding));
  }

  /** An agent that had moved away is about to return: nothing is forwarded for it any more. */
  stopForwarding(agentId: string): void {
    const holding = this.#byAgent.get(agentId);
    if (holding !== undefined) this.#stopForwarding(agentId, holding);
  }

  /** Calls `call`, in which the agent may take its place here, while its last node forwards. */
  whileForwarded(agentId: string, call: () => void): void {
    this.#passedOn.add(agentId);
    call();
    this.#passedOn.delete(agentId);
  }

  /** Resolves once messages for agents that have moved go only to their new nodes. */
  async handedOver(): Promise<void> {
    const { subjects } = this.#parts;
    while ([...this.#byAgent.values()].some(({ movedTo }) => movedTo !== null)) {
      await new Promise<void>((resolve) => subjects.after(HAND_OVER_POLL_MS, resolve));
    }
  }

  /** Any other node that holds one of the agents ends the link of the older login. */
  announceAll(): void {
    for (const [agentId, { loginNumber, movedTo }] of this.#byAgent) {
      if (movedTo === null) this.#announce(agentId, loginNumber);
    }
  }

  /**
   * Once a second. A lost `claim` and `holds` would leave two links of an agent, so each agent here
   * is named once in 30 s. Numbers of logins are consecutive: the same number of agents each time.
   */
  nameSome(): void {
    this.#ticks += 1;
    const agents: { agentId: string; epoch: number }[] = [];
    for (const [agentId, { loginNumber, movedTo }] of this.#byAgent) {
      if (movedTo === null && (loginNumber + this.#ticks) % ROUND_TICKS === 0) {
        agents.push({ agentId, epoch: loginNumber });
      }
    }
    for (let at = 0; at < agents.length; at += AGENTS_PER_MESSAGE) {
      const some = agents.slice(at, at + AGENTS_PER_MESSAGE);
      this.#parts.subjects.tellAll("holding", { agents: some });
    }
  }

  namedBy(agentId: string, node: string, loginNumber: number): void {
    const holding = this.#byAgent.get(agentId);
    if (holding?.movedTo === null) this.#heldBy(agentId, holding, node, loginNumber);
  }

  /** Another node announces that it holds an agent that is, or was, here. */
  #heldBy(agentId: string, holding: Holding, node: string, loginNumber: number): void {
    const { subjects } = this.#parts;
    if (holding.movedTo !== null) {
      // Everything that was forwarded arrives before this.
      subjects.tell(holding.movedTo, ["passed", agentId]);
      this.#stopForwarding(agentId, holding);
    } else if (loginNumber > holding.loginNumber) {
      this.#yieldTo(agentId, holding, node, loginNumber);
    } else {
      // That node was frozen or disconnected when this login took place.
      subjects.tell(node, ["older", agentId, holding.loginNumber]);
    }
  }

  /** Another node has a newer login of an agent, and has had it for longer than this node knows. */
  superseded(agentId: string, loginNumber: number): void {
    const holding = this.#byAgent.get(agentId);
    if (holding === undefined || holding.movedTo !== null) return;
    if (loginNumber > holding.loginNumber) this.#yieldTo(agentId, holding, "", loginNumber);
  }

  #toAgent(agentId: string, holding: Holding, { payload, replyTo }: Delivery): void {
    const { subjects, hub, claimed, nowMs } = this.#parts;
    const { words, body } = decodeBusMessage(payload);
    const [kind, from, number] = words;
    if (kind === "msg") {
      this.#message(agentId, holding, words, body);
      return;
    }
    const node = readName(from);
    if (node === subjects.node) return;
    if (kind === "bind") {
      if (holding.movedTo !== null) return;
      const firsts = readBody(Bodies.bind, body);
      hub().guests.bind(readOrigin(words.slice(1)), agentId, firsts, nowMs());
    } else if (kind === "claim") claimed(agentId, holding, node, readCount(number), replyTo);
    else if (kind === "holds") this.#heldBy(agentId, holding, node, readCount(number));
  }

  /** A client's message for an agent. `words`: kind and origin. */
  #message(agentId: string, holding: Holding, words: readonly string[], body: Uint8Array): void {
    const { subjects, hub, maxMessageBytes, nowMs } = this.#parts;
    if (holding.movedTo !== null) {
      subjects.tell(holding.movedTo, ["fwd", agentId, ...words.slice(1)], body);
      return;
    }
    const { early } = holding;
    if (early === null) {
      this.receive(agentId, readOrigin(words.slice(1)), body);
      return;
    }
    const text = readFrame(body, maxMessageBytes);
    const origin = readOrigin(words.slice(1));
    if (early.length < MAX_EARLY && this.#earlyBytes + body.length <= MAX_EARLY_BYTES) {
      early.push({ words, body: body.slice() });
      this.#earlyBytes += body.length;
    } else {
      hub().guests.turnAway(origin, text, nowMs());
    }
  }

  /** A client's message that is next in order, for an agent that is here. */
  receive(agentId: string, origin: Origin, body: Uint8Array): void {
    const { hub, maxMessageBytes, nowMs } = this.#parts;
    hub().guests.receive(origin, agentId, readFrame(body, maxMessageBytes), body, nowMs());
  }

  /** The agent's previous node has forwarded its last message. */
  passed(agentId: string): void {
    const holding = this.#byAgent.get(agentId);
    if (holding !== undefined) this.#passed(agentId, holding);
  }

  /**
   * Messages sent to the agent earlier must not arrive later: a session never accepts an older
   * `seq`.
   */
  #awaitPassed(agentId: string): void {
    const { subjects, forwardedWithinMs } = this.#parts;
    const holding = this.#byAgent.get(agentId);
    if (holding === undefined) return;
    holding.early ??= [];
    subjects.after(forwardedWithinMs, () => this.#passed(agentId, holding));
  }

  #passed(agentId: string, holding: Holding): void {
    const { early } = holding;
    holding.early = null;
    if (early === null) return;
    for (const { body } of early) this.#earlyBytes -= body.length;
    for (const { words, body } of early) {
      this.#parts.subjects.guard(() => this.#message(agentId, holding, words, body));
    }
  }

  #yieldTo(agentId: string, holding: Holding, node: string, loginNumber: number): void {
    const { hub, nowMs } = this.#parts;
    hub().yieldAgent(agentId, node, loginNumber, nowMs());
    this.#letGo(agentId, holding);
  }

  #stopForwarding(agentId: string, holding: Holding): void {
    if (holding.movedTo !== null) this.#letGo(agentId, holding);
  }

  #letGo(agentId: string, holding: Holding): void {
    if (this.#byAgent.get(agentId) === holding) this.#byAgent.delete(agentId);
    holding.unsubscribe();
  }

  #announce(agentId: string, loginNumber: number): void {
    const { subjects } = this.#parts;
    subjects.publish(`a.${agentId}`, ["holds", subjects.node, loginNumber]);
  }
}
