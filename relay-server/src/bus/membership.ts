/** The cluster's nodes: who is there, who was silent for too long, and what each reports. */
import type { Hub, HubStats } from "../core/hub.ts";
import type { Subjects } from "./subjects.ts";

/** A node that was silent for this long counts as gone; each node sends `hello` every second. */
const LOST_MS = 5000;
/** How long a node that is gone counts as about to return: longer than a restart. */
const EXPECTED_MS = 60_000;
/** Nodes remembered at once. */
const MAX_NODES = 1024;

/** What a node reports about itself; statistics add this up over all nodes. */
export interface NodeFigures {
  readonly agentsOnline: number;
  readonly connections: HubStats["connections"];
  /** Whether it is known to accept new peers. */
  readonly isReady: boolean;
}

interface OtherNode {
  heardMs: number;
  figures: NodeFigures;
  /** It was asked for its agents since either of the two was last unavailable. */
  isGreeted: boolean;
}

interface MembershipParts {
  readonly subjects: Subjects;
  readonly hub: () => Hub;
  readonly nowMs: () => number;
  readonly askForAgents: (node: string) => void;
}

export class Membership {
  readonly #parts: MembershipParts;
  readonly #nodes = new Map<string, OtherNode>();
  /** When another node was last heard from. */
  #heardMs = -Infinity;
  /** Whether this node accepts new peers. */
  isReady = (): boolean => true;

  constructor(parts: MembershipParts) {
    this.#parts = parts;
  }

  /** Whether a node was heard from recently. */
  isLive(node: string): boolean {
    return this.#nodes.has(node);
  }

  /** The names of the other nodes. */
  nodes(): Iterable<string> {
    return this.#nodes.keys();
  }

  /** Whether another node has reported lately that it accepts new peers. */
  hasReadyNode(): boolean {
    return this.figures().some(({ isReady }) => isReady);
  }

  /** Whether another node is there, or was there lately. */
  expectsNode(): boolean {
    return this.#parts.nowMs() - this.#heardMs < EXPECTED_MS;
  }

  /** What the other nodes have reported about themselves. */
  figures(): NodeFigures[] {
    return [...this.#nodes.values()].map(({ figures }) => figures);
  }

  /** Once a second: reports this node, and drops those that were silent. */
  tick(): void {
    const { hub, nowMs } = this.#parts;
    this.sayHello();
    for (const [node, { heardMs }] of this.#nodes) {
      if (nowMs() - heardMs <= LOST_MS) continue;
      this.#nodes.delete(node);
      hub().guests.nodeLost(node, nowMs());
      hub().remoteAgents.nodeLost(node, nowMs());
    }
  }

  /** `isBack`: this node was disconnected, and the others may not have noticed. */
  sayHello(isBack = false): void {
    this.#parts.subjects.tellAll("hello", this.#hello(isBack));
  }

  /** The same to one node, which then asks this one for its agents. */
  #greet(node: string): void {
    const { subjects } = this.#parts;
    subjects.tell(node, ["hello", subjects.node], JSON.stringify(this.#hello(true)));
  }

  #hello(isBack: boolean) {
    const { agentsOnline, connections } = this.#parts.hub().stats();
    return { agentsOnline, connections, isReady: this.isReady(), isBack };
  }

  /**
   * The first hello since either node was unavailable: messages sent in the meantime are lost. It
   * can hear this node now, so it is asked for its agents; those that it no longer lists are gone.
   */
  hello(node: string, figures: NodeFigures, isBack: boolean): void {
    const { hub, nowMs, askForAgents } = this.#parts;
    const known = this.#nodes.get(node);
    if (known === undefined && this.#nodes.size >= MAX_NODES) return;
    this.#heardMs = nowMs();
    this.#nodes.set(node, { heardMs: nowMs(), figures, isGreeted: true });
    if (known?.isGreeted === true && !isBack) return;
    // It may never have lost this node, which has forgotten its clients' sessions meanwhile.
    if (known === undefined && !isBack) this.#greet(node);
    hub().remoteAgents.nodeLeft(node, nowMs());
    askForAgents(node);
  }

  /** A node shuts down. */
  bye(node: string): void {
    const { hub, nowMs } = this.#parts;
    this.#nodes.delete(node);
    hub().guests.nodeLost(node, nowMs());
    hub().remoteAgents.nodeLeft(node, nowMs());
  }

  /** This node was disconnected: the others may have been running all the time, unheard here. */
  returned(): void {
    const heardMs = this.#parts.nowMs();
    for (const node of this.#nodes.values()) Object.assign(node, { heardMs, isGreeted: false });
  }
}
