/**
 * One node's part in a cluster: the hub's BusPort over subjects (docs/operations.md, "Subjects").
 * Events and a time go in, messages come out; the engine behind the transport carries messages and
 * decides nothing.
 *
 * | subject        | subscribers                    | messages                                 |
 * |----------------|--------------------------------|------------------------------------------|
 * | `a.<agent_id>` | the node with the agent's link | msg, bind, claim, holds                  |
 * | `u.<user>`     | nodes with clients of the user | here, gone                               |
 * | `all`          | every node                     | hello, bye, who, notice, failed, known   |
 * | `n.<node>.*`   | that node                      | ans, say, fwd, passed, guest, left,      |
 * |                |                                | refuse, who, compare, differs, here,     |
 * |                |                                | claimed, older, "nobody listens"         |
 */
import type { ErrorCode } from "@blindrelay/protocol";
import type { Subject } from "@blindrelay/protocol/wire";
import type { NoticeReader } from "../control/notice-reader.ts";
import type { UsernameLockout } from "../control/username-lockout.ts";
import {
  type Bus,
  type Claim,
  type Dispatch,
  FREE,
  type Origin,
  type Sighted,
} from "../core/bus.ts";
import type { Hub, HubStats } from "../core/hub.ts";
import type { Frame } from "../core/link.ts";
import type { Lockout } from "../core/lockout.ts";
import type { Notice } from "../store/notices.ts";
import { COMPARED_TOGETHER, digestOf, Rounds } from "./anti-entropy.ts";
import {
  BINDINGS_BYTES,
  BOUND_TOGETHER,
  Bodies,
  Malformed,
  readBody,
  readCode,
  readCount,
  readFrame,
  readName,
  readOrigin,
  SIGHTED_TOGETHER,
} from "./bodies.ts";
import { type BusMessage, decodeBusMessage, encodeBusMessage } from "./head.ts";
import type { Delivery, Transport } from "./transport.ts";

/**
 * A node that has not answered a claim by then counts as gone; it is told when it resumes. NATS
 * reports a killed node at once, so only a frozen node makes others wait this long, and a busy one
 * has the time to hand over the agent's sessions.
 */
const CLAIM_TIMEOUT_MS = 1000;
/** What may wait for the engine before messages are refused: some hundred of the longest. */
const MAX_BACKLOG_BYTES = 16_777_216;
/** The longest time for which a node forwards messages for an agent that has moved. */
const FORWARD_MS = 2000;

/** A node that was silent for this long counts as gone; each node sends `hello` every second. */
const LOST_MS = 5000;
/** Long enough to read what is in the sockets, even on a busy machine. */
const YIELD_MS = 25;
/** How often to wait again while messages from the agent wait for their turn. */
const MAX_YIELD_WAITS = 24;
/** Messages that wait for earlier ones, for one agent; and their bytes, over all agents. */
const MAX_EARLY = 256;
const MAX_EARLY_BYTES = 16_777_216;
/** Nodes remembered at once. */
const MAX_NODES = 1024;

export interface ClusterParts {
  readonly transport: Transport;
  /** Identifies this process, and no other before or after it; `[A-Za-z0-9_-]`. */
  readonly node: string;
  /** Prefix of all subjects. */
  readonly prefix: string;
  /** Limit of a client's or an agent's message. */
  readonly maxMessageBytes: number;
  readonly nowMs: () => number;
  readonly log: { error(fields: object, message: string): void };
  /** Calls `fn` once after `ms`, unless the returned function is called first. */
  readonly after: (ms: number, fn: () => void) => () => void;
}

interface Holding {
  /** Number of the login that holds the agent, here or (`movedTo`) there. */
  loginNumber: number;
  userId: string;
  /** The node that the agent has moved to; later messages are forwarded to it. */
  movedTo: string | null;
  /**
   * What arrived here while the previous node may still forward earlier messages; null: it does
   * not.
   */
  early: BusMessage[] | null;
  unsubscribe: () => void;
}

/** A `Sighted` in the body of `here`; `epoch` is the login number. */
interface SightedOnBus {
  readonly agentId: string;
  readonly epoch: number;
  readonly onlineForMs: number;
}

/** What a node reports about itself; statistics add this up over all nodes. */
export interface NodeFigures {
  readonly agentsOnline: number;
  readonly connections: HubStats["connections"];
}

interface OtherNode {
  heardMs: number;
  figures: NodeFigures;
  /** It was asked for its agents since either of the two was last unavailable. */
  isGreeted: boolean;
}

/** Parts of sids that lead from one client to an agent. */
type Bound = Origin & { readonly firsts: readonly string[] };

/** State that all nodes keep in common. */
export interface Shared {
  readonly board: Pick<NoticeReader, "hint">;
  readonly lockout: Lockout;
  readonly names: UsernameLockout;
}

interface PendingClaim {
  readonly userId: string;
  readonly agentId: string;
  readonly loginNumber: number;
  readonly answer: (claim: Claim) => void;
  readonly cancel: () => void;
}

export class Cluster implements Bus {
  readonly #parts: ClusterParts;
  readonly #holdings = new Map<string, Holding>();
  readonly #claims = new Map<string, PendingClaim>();
  /** Agents whose messages another node forwards from now on, until they have their place here. */
  readonly #passedOn = new Set<string>();
  readonly #nodes = new Map<string, OtherNode>();
  /** For each user with clients here: unsubscribes from the user's subject. */
  readonly #users = new Map<string, () => void>();
  readonly #rounds = new Rounds();
  /** Bytes in `early`, over all agents. */
  #earlyBytes = 0;
  #hub: Hub | null = null;
  #lastClaim = 0;
  /** Messages that were not ours or were malformed. */
  #malformed = 0;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
  }

  /** From now on received messages reach the hub and the common state. */
  attach(hub: Hub, shared: Shared): void {
    const { transport, node, prefix } = this.#parts;
    this.#hub = hub;
    this.#listen(`${prefix}.n.${node}.*`, (delivery) => this.#toNode(hub, delivery));
    this.#listen(`${prefix}.all`, (delivery) => this.#toAll(shared, delivery));
    transport.onUp(() => this.#guard(() => this.#returned()));
    shared.lockout.onFailure = (address) => this.#tellAll("failed", { address });
    shared.names.onFailure = (name) => this.#tellAll("failed", { name });
    shared.names.onKnown = (pair) => this.#tellAll("known", { pair });
    this.#sayHello(hub);
  }

  /** Once a second. */
  tick(): void {
    this.#guard(() => this.#tick());
  }

  #tick(): void {
    const { transport, nowMs } = this.#parts;
    if (!transport.isUp || this.#hub === null) return;
    this.#sayHello(this.#hub);
    for (const [node, { heardMs }] of this.#nodes) {
      if (nowMs() - heardMs > LOST_MS) this.#lose(node);
    }
    this.#hub.guests.refresh((node) => this.isLive(node), nowMs());
    this.#compare(this.#hub);
  }

  /** Asks the other nodes whether some users' agents there are the ones known here. */
  #compare(hub: Hub): void {
    const users = this.#rounds.next(this.#users);
    const known = users.map((userId) => hub.remoteAgents.loginsOf(userId));
    for (const node of this.#nodes.keys()) {
      const said = users.map((userId, at) => ({
        userId,
        digest: digestOf(known[at]?.get(node) ?? []),
      }));
      for (let at = 0; at < said.length; at += COMPARED_TOGETHER) {
        const some = JSON.stringify(said.slice(at, at + COMPARED_TOGETHER));
        this.#tell(node, ["compare", this.#parts.node], some);
      }
    }
  }

  /** For `/metrics`. */
  pending(): { readonly claims: number; readonly malformed: number } {
    return { claims: this.#claims.size, malformed: this.#malformed };
  }

  /** What the other nodes have reported about themselves. */
  figures(): NodeFigures[] {
    return [...this.#nodes.values()].map(({ figures }) => figures);
  }

  /** `isBack`: this node was disconnected, and the others may not have noticed. */
  #sayHello(hub: Hub, isBack = false): void {
    const { agentsOnline, connections } = hub.stats();
    this.#tellAll("hello", { agentsOnline, connections, isBack });
  }

  /** This node shuts down. */
  leaveAll(): void {
    this.#tellAll("bye", {});
  }

  /** Announces new notices in the store, which the other nodes can read there. */
  post(notices: readonly Notice[]): void {
    if (notices.length > 0) this.#tellAll("notice", {});
  }

  /** Resolves once messages for agents that have moved go only to their new nodes. */
  async handedOver(): Promise<void> {
    while ([...this.#holdings.values()].some(({ movedTo }) => movedTo !== null)) {
      await new Promise<void>((resolve) => this.#parts.after(YIELD_MS, resolve));
    }
  }

  // ---- called by the hub

  deliver(
    agentId: string,
    from: Omit<Origin, "node">,
    ticket: number,
    frame: Uint8Array,
  ): Dispatch {
    const { transport, node, prefix } = this.#parts;
    if (!transport.isUp || !this.hasRoom()) return "unavailable";
    const { connection, userId, sessionHash } = from;
    const words = ["msg", node, connection, userId, sessionHash];
    transport.publish(
      `${prefix}.a.${agentId}`,
      encodeBusMessage(words, frame),
      `${prefix}.n.${node}.${ticket}`,
    );
    return "sent";
  }

  answer(to: Origin, frame: Frame): void {
    const { node } = this.#parts;
    const kind = typeof frame === "string" ? "say" : "ans";
    this.#tell(to.node, [kind, node, to.connection], frame);
  }

  hasRoom(): boolean {
    const { transport } = this.#parts;
    return transport.isUp && transport.backlogBytes <= MAX_BACKLOG_BYTES;
  }

  refuse(node: string, agentId: string, code: ErrorCode, subject: Subject): void {
    const { sid, requestId } = subject;
    this.#tell(node, ["refuse", agentId, code], JSON.stringify({ sid, requestId }));
  }

  welcome(guest: Origin): void {
    this.#tell(guest.node, ["guest", this.#parts.node, guest.connection]);
  }

  leave(connection: number, nodes: Iterable<string>): void {
    for (const node of nodes) this.#tell(node, ["left", this.#parts.node, connection]);
  }

  bind(agentId: string, from: Omit<Origin, "node">, firsts: readonly string[]): void {
    const { connection, userId, sessionHash } = from;
    const words = ["bind", this.#parts.node, connection, userId, sessionHash];
    for (let at = 0; at < firsts.length; at += BOUND_TOGETHER) {
      const some = JSON.stringify(firsts.slice(at, at + BOUND_TOGETHER));
      this.#publish(`a.${agentId}`, words, some);
    }
  }

  agentOnline(userId: string, agent: Sighted, isNews: boolean): void {
    const { agentId, loginNumber } = agent;
    const holding = this.#holdings.get(agentId);
    if (holding === undefined) {
      const subject = `${this.#parts.prefix}.a.${agentId}`;
      const unsubscribe = this.#listen(subject, (delivery) => this.#toAgent(agentId, delivery));
      this.#holdings.set(agentId, { loginNumber, userId, movedTo: null, early: null, unsubscribe });
    } else {
      Object.assign(holding, { loginNumber, userId, movedTo: null });
    }
    if (this.#passedOn.delete(agentId)) this.#awaitPassed(agentId);
    this.#sayHolding(agentId, loginNumber);
    this.#sayHere(`u.${userId}`, userId, [agent], isNews);
  }

  agentOffline(userId: string, agentId: string, loginNumber: number, moving: boolean): void {
    const { node } = this.#parts;
    this.#publish(`u.${userId}`, ["gone", node, userId, agentId, loginNumber, Number(moving)]);
    if (moving) return; // later messages are forwarded, until `holds`
    const holding = this.#holdings.get(agentId);
    if (holding === undefined || holding.movedTo !== null) return;
    if (holding.loginNumber > loginNumber) return;
    this.#letGo(agentId, holding);
  }

  clientsOnline(userId: string): void {
    const subject = `${this.#parts.prefix}.u.${userId}`;
    const unsubscribe = this.#listen(subject, (delivery) => this.#toUser(delivery));
    this.#users.set(userId, unsubscribe);
    this.#tellAll("who", { userId });
  }

  clientsOffline(userId: string): void {
    this.#users.get(userId)?.();
    this.#users.delete(userId);
  }

  /** Whether a node was heard from recently. */
  isLive(node: string): boolean {
    return this.#nodes.has(node);
  }

  /** Without responders the agent is free. An agent that is already here needs no claim. */
  claim(
    userId: string,
    agentId: string,
    loginNumber: number,
    answer: (claim: Claim) => void,
  ): void {
    const { transport, prefix, node } = this.#parts;
    const holding = this.#holdings.get(agentId);
    if (!transport.isUp || (holding !== undefined && holding.movedTo === null)) {
      answer(FREE);
      return;
    }
    // The agent returns, so messages for it are no longer forwarded.
    if (holding !== undefined) this.#letGo(agentId, holding);
    this.#lastClaim += 1;
    const id = `c${this.#lastClaim}`;
    const cancel = this.#after(CLAIM_TIMEOUT_MS, () => this.#claimed(id, null));
    this.#claims.set(id, { userId, agentId, loginNumber, answer, cancel });
    transport.publish(
      `${prefix}.a.${agentId}`,
      encodeBusMessage(["claim", node, loginNumber]),
      `${prefix}.n.${node}.${id}`,
    );
  }

  // ---- received messages

  #toAgent(agentId: string, { payload, replyTo }: Delivery): void {
    const hub = this.#hub;
    const holding = this.#holdings.get(agentId);
    if (hub === null || holding === undefined) return;
    const { words, body } = messageIn(payload);
    const [kind, from, number] = words;
    if (kind === "msg") {
      this.#message(hub, agentId, holding, words, body);
      return;
    }
    const node = readName(from);
    if (node === this.#parts.node) return;
    if (kind === "bind") {
      if (holding.movedTo !== null) return;
      const firsts = readBody(Bodies.bind, body);
      hub.guests.bind(readOrigin(words.slice(1)), agentId, firsts, this.#parts.nowMs());
    } else if (kind === "claim") {
      const loginNumber = readCount(number);
      this.#onceRead(hub, agentId, () =>
        this.#yield(hub, agentId, holding, node, loginNumber, replyTo),
      );
    } else if (kind === "holds") this.#heldBy(hub, agentId, holding, node, readCount(number));
  }

  #message(
    hub: Hub,
    agentId: string,
    holding: Holding,
    words: readonly string[],
    body: Uint8Array,
  ): void {
    if (holding.movedTo !== null) {
      this.#tell(holding.movedTo, ["fwd", agentId, ...words.slice(1)], body);
      return;
    }
    const { early } = holding;
    if (early === null) {
      this.#receive(hub, agentId, words.slice(1), body);
      return;
    }
    const { maxMessageBytes, nowMs } = this.#parts;
    const text = readFrame(body, maxMessageBytes);
    const origin = readOrigin(words.slice(1));
    if (early.length < MAX_EARLY && this.#earlyBytes + body.length <= MAX_EARLY_BYTES) {
      early.push({ words, body: body.slice() });
      this.#earlyBytes += body.length;
    } else {
      hub.guests.turnAway(origin, text, nowMs());
    }
  }

  /** `words`: the origin of a guest's message. */
  #receive(hub: Hub, agentId: string, words: readonly string[], body: Uint8Array): void {
    const { maxMessageBytes, nowMs } = this.#parts;
    const text = readFrame(body, maxMessageBytes);
    hub.guests.receive(readOrigin(words), agentId, text, body, nowMs());
  }

  /**
   * Messages sent to the agent earlier must not arrive later: a session never accepts an older
   * `seq`.
   */
  #awaitPassed(agentId: string): void {
    const holding = this.#holdings.get(agentId);
    if (holding === undefined) return;
    holding.early ??= [];
    this.#after(CLAIM_TIMEOUT_MS, () => this.#passed(holding, agentId));
  }

  #passed(holding: Holding, agentId: string): void {
    const { early } = holding;
    holding.early = null;
    const hub = this.#hub;
    if (early === null || hub === null) return;
    for (const { body } of early) this.#earlyBytes -= body.length;
    for (const { words, body } of early) {
      this.#guard(() => this.#message(hub, agentId, holding, words, body));
    }
  }

  /** What the agent said on its old link before it said hello on the new one is read first. */
  #onceRead(hub: Hub, agentId: string, goOn: () => void): void {
    const wait = (times: number) =>
      this.#after(YIELD_MS, () => {
        if (times > 0 && hub.hasHeld(agentId)) wait(times - 1);
        else goOn();
      });
    if (hub.isOnline(agentId)) wait(MAX_YIELD_WAITS);
    else goOn();
  }

  #yield(
    hub: Hub,
    agentId: string,
    holding: Holding,
    node: string,
    loginNumber: number,
    replyTo: string | null,
  ): void {
    const { nowMs, transport } = this.#parts;
    const bindings = this.#bindingsOf(hub, agentId, holding.userId);
    const claim = hub.claimAgent(agentId, node, loginNumber, nowMs());
    if (claim.kind === "yielded" || claim.kind === "free") {
      Object.assign(holding, { loginNumber, movedTo: node });
      this.#after(FORWARD_MS, () => this.#stopForwarding(agentId, holding));
    }
    if (replyTo !== null && transport.isUp) {
      const said = claim.kind === "yielded" ? { ...claim, bindings } : claim;
      transport.publish(replyTo, encodeBusMessage(["claimed"], JSON.stringify(said)));
    }
  }

  /** Which sessions lead to an agent, so that its new node can deliver its messages at once. */
  #bindingsOf(hub: Hub, agentId: string, userId: string): Bound[] {
    const bindings: Bound[] = [];
    let room = BINDINGS_BYTES;
    for (const { node, ...origin } of hub.guests.bindingsOf(userId, agentId)) {
      const bound = { ...origin, node: node ?? this.#parts.node };
      room -= JSON.stringify(bound).length + 1;
      if (room < 0) break;
      bindings.push(bound);
    }
    return bindings;
  }

  /** Another node announces that it holds an agent that is, or was, here. */
  #heldBy(hub: Hub, agentId: string, holding: Holding, node: string, loginNumber: number): void {
    if (holding.movedTo !== null) {
      // Everything that was forwarded arrives before this.
      this.#tell(holding.movedTo, ["passed", agentId]);
      this.#stopForwarding(agentId, holding);
    } else if (loginNumber > holding.loginNumber) {
      hub.yieldAgent(agentId, node, loginNumber, this.#parts.nowMs());
      this.#letGo(agentId, holding);
    } else {
      // That node was frozen or disconnected when this login took place.
      this.#tell(node, ["older", agentId, holding.loginNumber]);
    }
  }

  #toNode(hub: Hub, delivery: Delivery): void {
    const { prefix, node, nowMs, maxMessageBytes } = this.#parts;
    const token = delivery.subject.slice(`${prefix}.n.${node}.`.length);
    if (delivery.nobody) {
      if (token.startsWith("c")) this.#claimed(token, null);
      else hub.remoteRouting.nobody(Number(token), nowMs());
      return;
    }
    const { words, body } = messageIn(delivery.payload);
    const [kind = "", from = "", third] = words;
    switch (kind) {
      case "ans":
      case "say": {
        const number = readCount(third);
        const text = readFrame(body, maxMessageBytes);
        if (
          !hub.remoteRouting.arrive(number, readName(from), kind === "say", text, body, nowMs())
        ) {
          this.leave(number, [from]);
        }
        break;
      }
      case "fwd":
        this.#receive(hub, from, words.slice(2), body);
        break;
      case "passed": {
        const holding = this.#holdings.get(from);
        if (holding !== undefined) this.#passed(holding, from);
        break;
      }
      case "guest": {
        const number = readCount(third);
        if (!hub.remoteRouting.welcomed(number, readName(from))) this.leave(number, [from]);
        break;
      }
      case "left":
        hub.guests.left(from, readCount(third), nowMs());
        break;
      case "refuse":
        hub.guests.refused(from, readCode(third), readBody(Bodies.refuse, body), nowMs());
        break;
      case "here":
        this.#sighted(hub, words, body);
        break;
      case "who":
        this.#answerWho(readName(from), readName(third), true);
        break;
      case "compare":
        this.#compared(hub, readName(from), readBody(Bodies.compare, body));
        break;
      case "differs":
        hub.remoteAgents.doubtAt(readName(third), readName(from), nowMs());
        break;
      case "claimed":
        this.#claimed(token, readBody(Bodies.claimed, body));
        break;
      case "older":
        this.#isOlder(hub, from, readCount(third));
        break;
    }
  }

  /** Another node has a newer login of an agent, and has had it for longer than this node knows. */
  #isOlder(hub: Hub, agentId: string, loginNumber: number): void {
    const holding = this.#holdings.get(agentId);
    if (holding === undefined || holding.movedTo !== null) return;
    if (loginNumber <= holding.loginNumber) return;
    hub.yieldAgent(agentId, "", loginNumber, this.#parts.nowMs());
    this.#letGo(agentId, holding);
  }

  #toUser({ payload }: Delivery): void {
    const hub = this.#hub;
    if (hub === null) return;
    const { words, body } = messageIn(payload);
    const [kind, node, userId, agentId, loginNumber, moving] = words;
    if (node === this.#parts.node) return;
    if (kind === "here") this.#sighted(hub, words, body);
    else if (kind === "gone") {
      const number = readCount(loginNumber);
      const nowMs = this.#parts.nowMs();
      hub.remoteAgents.offline(readName(userId), readName(agentId), number, moving === "1", nowMs);
    }
  }

  #sighted(hub: Hub, words: readonly string[], body: Uint8Array): void {
    const [, node, userId, isNews] = words;
    const agents = readBody(Bodies.here, body).map(({ agentId, epoch, onlineForMs }) => ({
      agentId,
      loginNumber: epoch,
      onlineForMs,
    }));
    const nowMs = this.#parts.nowMs();
    hub.remoteAgents.online(readName(userId), readName(node), agents, isNews === "1", nowMs);
  }

  #toAll(shared: Shared, { payload }: Delivery): void {
    const { words, body } = messageIn(payload);
    const [kind = "", from] = words;
    const node = readName(from);
    const { nowMs } = this.#parts;
    if (node === this.#parts.node) return;
    switch (kind) {
      case "hello": {
        const { isBack, ...figures } = readBody(Bodies.hello, body);
        this.#greeted(node, figures, isBack);
        break;
      }
      case "bye":
        this.#nodes.delete(node);
        this.#hub?.guests.nodeLost(node, nowMs());
        this.#hub?.remoteAgents.nodeLeft(node, nowMs());
        break;
      case "notice":
        shared.board.hint();
        break;
      case "failed": {
        const failed = readBody(Bodies.failed, body);
        if ("address" in failed) shared.lockout.failElsewhere(failed.address, nowMs());
        else shared.names.failElsewhere(failed.name, nowMs());
        break;
      }
      case "who":
        this.#answerWho(node, readBody(Bodies.who, body).userId, false);
        break;
      case "known":
        shared.names.succeedElsewhere(readBody(Bodies.known, body).pair);
        break;
    }
  }

  /**
   * The first hello since either node was unavailable: messages sent in the meantime are lost. It
   * can hear this node now, so it is asked for its agents; those that it no longer lists are gone.
   */
  #greeted(node: string, figures: NodeFigures, isBack: boolean): void {
    const { nowMs } = this.#parts;
    const known = this.#nodes.get(node);
    if (known === undefined && this.#nodes.size >= MAX_NODES) return;
    this.#nodes.set(node, { heardMs: nowMs(), figures, isGreeted: true });
    if (known?.isGreeted === true && !isBack) return;
    this.#hub?.remoteAgents.nodeLeft(node, nowMs());
    for (const userId of this.#users.keys()) this.#tell(node, ["who", this.#parts.node, userId]);
  }

  /** Another node's list of agents differs: it is sent the current ones, and forgets the rest. */
  #compared(hub: Hub, node: string, users: readonly { userId: string; digest: number }[]): void {
    for (const { userId, digest } of users) {
      const agents = hub.agentsOf(userId, this.#parts.nowMs());
      if (digestOf(agents.map(({ loginNumber }) => loginNumber)) === digest) continue;
      this.#tell(node, ["differs", this.#parts.node, userId]);
      this.#answerWho(node, userId, true);
    }
  }

  #answerWho(node: string, userId: string, isNews: boolean): void {
    const agents = this.#hub?.agentsOf(userId, this.#parts.nowMs()) ?? [];
    for (let at = 0; at < agents.length; at += SIGHTED_TOGETHER) {
      this.#sayHere(`n.${node}.0`, userId, agents.slice(at, at + SIGHTED_TOGETHER), isNews);
    }
  }

  #lose(node: string): void {
    const nowMs = this.#parts.nowMs();
    this.#nodes.delete(node);
    this.#hub?.guests.nodeLost(node, nowMs);
    this.#hub?.remoteAgents.nodeLost(node, nowMs);
  }

  /**
   * The engine is back: the other nodes may have been running all the time, but were not heard
   * here.
   */
  #returned(): void {
    const nowMs = this.#parts.nowMs();
    for (const node of this.#nodes.values())
      Object.assign(node, { heardMs: nowMs, isGreeted: false });
    this.#sayHoldings();
    this.#hub?.remoteAgents.doubt(nowMs);
    if (this.#hub !== null) this.#sayHello(this.#hub, true);
  }

  /** `said`: the answer of the node that had the agent; null: there was none. */
  #claimed(id: string, said: (Claim & { bindings?: readonly Bound[] }) | null): void {
    const pending = this.#claims.get(id);
    if (pending === undefined) return;
    this.#claims.delete(id);
    const { userId, agentId, loginNumber, answer, cancel } = pending;
    cancel();
    // A node that restarts forwards messages even if the agent had already left it.
    if (said?.kind === "yielded" || said?.kind === "free") this.#passedOn.add(agentId);
    answer(said ?? FREE);
    this.#passedOn.delete(agentId);
    if (said?.kind !== "yielded") return;
    const holding = this.#holdings.get(agentId);
    if (holding !== undefined && holding.movedTo === null) this.#bind(agentId, said.bindings ?? []);
    // It left, or was refused, after the other node had let it go: it is nowhere.
    else this.agentOffline(userId, agentId, loginNumber, false);
  }

  #bind(agentId: string, bindings: readonly Bound[]): void {
    const { node, nowMs } = this.#parts;
    for (const { firsts, ...origin } of bindings) {
      // This node's own clients have bound theirs here.
      if (origin.node === node) continue;
      this.#hub?.guests.bind(origin, agentId, firsts, nowMs());
    }
  }

  /** An invalid message from any sender is dropped and has no other effect. */
  #listen(subject: string, take: (delivery: Delivery) => void): () => void {
    const { transport, log } = this.#parts;
    return transport.subscribe(subject, (delivery) => {
      try {
        take(delivery);
      } catch (error) {
        if (error instanceof Malformed) this.#malformed += 1;
        else log.error({ err: error, subject }, "a message of the bus could not be handled");
      }
    });
  }

  /** A fault in one call must not end the process. */
  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#parts.log.error({ err: error }, "the bus could not do what was due");
    }
  }

  #after(ms: number, call: () => void): () => void {
    return this.#parts.after(ms, () => this.#guard(call));
  }

  // ---- what is held here

  #letGo(agentId: string, holding: Holding): void {
    if (this.#holdings.get(agentId) === holding) this.#holdings.delete(agentId);
    holding.unsubscribe();
  }

  #stopForwarding(agentId: string, holding: Holding): void {
    if (holding.movedTo !== null) this.#letGo(agentId, holding);
  }

  /** Any other node that holds the agent ends the link of the older login. */
  #sayHolding(agentId: string, loginNumber: number): void {
    this.#publish(`a.${agentId}`, ["holds", this.#parts.node, loginNumber]);
  }

  #sayHoldings(): void {
    for (const [agentId, { loginNumber, movedTo }] of this.#holdings) {
      if (movedTo === null) this.#sayHolding(agentId, loginNumber);
    }
  }

  #sayHere(to: string, userId: string, agents: readonly Sighted[], isNews: boolean): void {
    const said = agents.map(
      ({ agentId, loginNumber, onlineForMs }): SightedOnBus => ({
        agentId,
        epoch: loginNumber,
        onlineForMs,
      }),
    );
    this.#publish(to, ["here", this.#parts.node, userId, Number(isNews)], JSON.stringify(said));
  }

  #tellAll(kind: string, said: object): void {
    this.#publish("all", [kind, this.#parts.node], JSON.stringify(said));
  }

  #tell(node: string, words: readonly (string | number)[], body: Frame = ""): void {
    this.#publish(`n.${node}.0`, words, body);
  }

  #publish(to: string, words: readonly (string | number)[], body: Frame = ""): void {
    const { transport, prefix } = this.#parts;
    if (transport.isUp) transport.publish(`${prefix}.${to}`, encodeBusMessage(words, body));
  }
}

const messageIn = (payload: Uint8Array): BusMessage => {
  const message = decodeBusMessage(payload);
  if (message === null) throw new Malformed("no head");
  return message;
};
