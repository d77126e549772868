/**
 * One node's part in a cluster: the hub's BusPort over subjects (docs/cluster.md, "Subjects").
 * Events and a time go in, messages come out; the engine behind the transport carries messages and
 * decides nothing.
 *
 * | subject        | subscribers                    | messages                                 |
 * |----------------|--------------------------------|------------------------------------------|
 * | `a.<agent_id>` | the node with the agent's link | msg, bind, claim, holds                  |
 * | `u.<user>`     | nodes with clients of the user | here, gone                               |
 * | `all`          | every node                     | hello, bye, who, notice, holding, failed,|
 * |                |                                | known                                    |
 * | `n.<node>.*`   | that node                      | ans, say, fwd, passed, guest, left,      |
 * |                |                                | refuse, who, compare, differs, here,     |
 * |                |                                | hello, claimed, older, "nobody listens"  |
 *
 * Holdings knows the agents that are here, Claims moves them between nodes, Membership knows the
 * nodes, Announcements tell nodes with clients of a user which agents are online. This file carries
 * the clients' messages, and hands each received message to one of the four or to the hub.
 */
import type { ErrorCode } from "@blindrelay/protocol";
import type { Subject } from "@blindrelay/protocol/wire";
import type { NoticeReader } from "../control/notice-reader.ts";
import type { UsernameLockout } from "../control/username-lockout.ts";
import type { Bus, Claim, Dispatch, OnlineAgent, Origin } from "../core/bus.ts";
import type { Hub } from "../core/hub.ts";
import type { Lockout } from "../core/limits/lockout.ts";
import type { Frame } from "../core/link.ts";
import type { Notice } from "../store/notices.ts";
import { Announcements } from "./announcements.ts";
import {
  Bodies,
  NOTICES_PER_MESSAGE,
  readBody,
  readCode,
  readCount,
  readFrame,
  readName,
  readOrigin,
  SIDS_PER_MESSAGE,
  wordsOf,
} from "./bodies.ts";
import { CLAIM_TIMEOUT_MS, Claims } from "./claims.ts";
import { decodeBusMessage } from "./head.ts";
import { Holdings } from "./holdings.ts";
import { Membership } from "./membership.ts";
import { type BusTraffic, type SubjectParts, Subjects } from "./subjects.ts";
import type { Delivery } from "./transport.ts";

interface ClusterParts extends SubjectParts {
  /** Limit of a client's or an agent's message. */
  readonly maxMessageBytes: number;
  readonly nowMs: () => number;
}

/** State that all nodes keep in common. */
export interface Shared {
  readonly notices: Pick<NoticeReader, "hear">;
  readonly lockout: Lockout;
  readonly usernameLockout: UsernameLockout;
  /** Whether this node accepts new peers, as far as it knows at once. */
  readonly isReady: () => boolean;
}

export class Cluster implements Bus {
  readonly #parts: ClusterParts;
  readonly #subjects: Subjects;
  readonly holdings: Holdings;
  readonly #claims: Claims;
  readonly membership: Membership;
  readonly #announcements: Announcements;
  #attached: Hub | null = null;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    const { nowMs, maxMessageBytes } = parts;
    const subjects = new Subjects(parts);
    const hub = () => this.#hub;
    this.#subjects = subjects;
    this.holdings = new Holdings({
      subjects,
      hub,
      maxMessageBytes,
      nowMs,
      forwardedWithinMs: CLAIM_TIMEOUT_MS,
      claimed: (...claim) => this.#claims.claimedBy(...claim),
    });
    this.#claims = new Claims({
      subjects,
      holdings: this.holdings,
      hub,
      nowMs,
      onLost: (userId, agentId, number) => this.agentOffline(userId, agentId, number, false),
    });
    this.#announcements = new Announcements({
      subjects,
      hub,
      nowMs,
      isLive: (node) => this.membership.isLive(node),
    });
    this.membership = new Membership({
      subjects,
      hub,
      nowMs,
      askForAgents: (node) => this.#announcements.ask(node),
    });
  }

  /** Nothing is received before `attach`. */
  get #hub(): Hub {
    if (this.#attached === null) throw new Error("the cluster has no hub yet");
    return this.#attached;
  }

  /** From now on received messages reach the hub and the common state. */
  attach(hub: Hub, shared: Shared): void {
    const subjects = this.#subjects;
    const { lockout, usernameLockout } = shared;
    this.#attached = hub;
    this.membership.isReady = shared.isReady;
    subjects.listen(`n.${subjects.node}.*`, (delivery) => this.#toNode(delivery));
    subjects.listen("all", (delivery) => this.#toAll(shared, delivery));
    this.#parts.transport.onUp(() => subjects.guard(() => this.#returned()));
    lockout.onFailure = (address) => subjects.tellAll("failed", { address });
    usernameLockout.onFailure = (name) => subjects.tellAll("failed", { name });
    usernameLockout.onKnown = (pair) => subjects.tellAll("known", { pair });
    this.membership.sayHello();
  }

  /** Once a second. */
  tick(): void {
    if (!this.#subjects.isUp || this.#attached === null) return;
    this.#subjects.guard(() => {
      this.membership.tick();
      this.#hub.guests.refresh((node) => this.membership.isLive(node), this.#parts.nowMs());
      this.#announcements.compare(this.membership.nodes());
      if (this.membership.figures().length > 0) this.holdings.nameSome();
    });
  }

  /** For `/metrics`. `claims`: logins of agents that wait for another node's answer. */
  traffic(): BusTraffic & { readonly claims: number } {
    return { ...this.#subjects.traffic(), claims: this.#claims.pending };
  }

  /** This node shuts down. */
  leaveAll(): void {
    this.#subjects.tellAll("bye", {});
  }

  /**
   * Sends new notices to the other nodes, which may not be able to read the store. What only ends
   * links is acted on as received; whoever can write on the bus can end links anyway. The rest is
   * read in the store.
   */
  post(notices: readonly Notice[]): void {
    const ends = notices.filter(({ kind }) => kind !== "unlock");
    for (let at = 0; at < ends.length; at += NOTICES_PER_MESSAGE) {
      const some = ends.slice(at, at + NOTICES_PER_MESSAGE);
      this.#subjects.tellAll("notice", { notices: some });
    }
    if (ends.length < notices.length) this.#subjects.tellAll("notice", {});
  }

  // ---- called by the hub

  deliver(
    agentId: string,
    from: Omit<Origin, "node">,
    ticket: number,
    frame: Uint8Array,
  ): Dispatch {
    if (!this.hasRoom()) return "unavailable";
    const words = ["msg", ...this.#wordsOf(from)];
    this.#subjects.request(`a.${agentId}`, words, String(ticket), frame);
    return "sent";
  }

  answer(to: Origin, frame: Frame, agentId: string | null): void {
    const from = [this.#subjects.node, to.connection];
    this.#subjects.tell(
      to.node,
      agentId === null ? ["say", ...from] : ["ans", ...from, agentId],
      frame,
    );
  }

  hasRoom(): boolean {
    return this.#subjects.hasRoom();
  }

  hasReadyNode(): boolean {
    return this.#subjects.isUp && this.membership.hasReadyNode();
  }

  expectsNode(): boolean {
    return this.membership.expectsNode();
  }

  rank(): number {
    return [...this.membership.nodes()].filter((node) => node < this.#subjects.node).length;
  }

  sayReadiness(): void {
    if (this.#subjects.isUp) this.membership.sayHello();
  }

  refuse(node: string, agentId: string, code: ErrorCode, subject: Subject): void {
    const { sid, requestId } = subject;
    this.#subjects.tell(node, ["refuse", agentId, code], JSON.stringify({ sid, requestId }));
  }

  welcome(guest: Origin): void {
    this.#subjects.tell(guest.node, ["guest", this.#subjects.node, guest.connection]);
  }

  leave(connection: number, nodes: Iterable<string>): void {
    for (const node of nodes) {
      this.#subjects.tell(node, ["left", this.#subjects.node, connection]);
    }
  }

  bind(agentId: string, from: Omit<Origin, "node">, firsts: readonly string[]): void {
    const words = ["bind", ...this.#wordsOf(from)];
    for (let at = 0; at < firsts.length; at += SIDS_PER_MESSAGE) {
      const some = JSON.stringify(firsts.slice(at, at + SIDS_PER_MESSAGE));
      this.#subjects.publish(`a.${agentId}`, words, some);
    }
  }

  agentOnline(userId: string, agent: OnlineAgent): void {
    this.holdings.add(agent.agentId, userId, agent.loginNumber);
    this.#announcements.agentOnline(userId, agent);
  }

  agentOffline(userId: string, agentId: string, loginNumber: number, moving: boolean): void {
    this.#announcements.agentOffline(userId, agentId, loginNumber, moving);
    // If it moves, later messages are forwarded until the other node holds it.
    if (!moving) this.holdings.remove(agentId, loginNumber);
  }

  clientsOnline(userId: string): void {
    this.#announcements.clientsOnline(userId);
  }

  clientsOffline(userId: string): void {
    this.#announcements.clientsOffline(userId);
  }

  claim(
    userId: string,
    agentId: string,
    loginNumber: number,
    answer: (claim: Claim) => void,
  ): void {
    this.#claims.claim(userId, agentId, loginNumber, answer);
  }

  #wordsOf(origin: Omit<Origin, "node">): (string | number)[] {
    return wordsOf({ ...origin, node: this.#subjects.node });
  }

  // ---- received messages

  #toNode(delivery: Delivery): void {
    const { nowMs, maxMessageBytes } = this.#parts;
    const { guests, remoteRouting, remoteAgents } = this.#hub;
    const token = this.#subjects.tokenOf(delivery);
    if (delivery.nobody) {
      if (token.startsWith("c")) this.#claims.answered(token, null);
      else remoteRouting.nobody(Number(token), nowMs());
      return;
    }
    const { words, body } = decodeBusMessage(delivery.payload);
    const [kind = "", from = "", third, fourth] = words;
    switch (kind) {
      case "ans":
      case "say": {
        const number = readCount(third);
        const text = readFrame(body, maxMessageBytes);
        const agentId = kind === "say" ? null : readName(fourth);
        if (!remoteRouting.arrive(number, readName(from), agentId, text, body, nowMs())) {
          this.leave(number, [from]);
        }
        break;
      }
      case "hello":
        this.#hello(readName(from), body);
        break;
      case "fwd":
        this.holdings.receive(from, readOrigin(words.slice(2)), body);
        break;
      case "passed":
        this.holdings.passed(from);
        break;
      case "guest": {
        const number = readCount(third);
        if (!remoteRouting.welcomed(number, readName(from))) this.leave(number, [from]);
        break;
      }
      case "left":
        guests.left(from, readCount(third), nowMs());
        break;
      case "refuse":
        guests.refused(from, readCode(third), readBody(Bodies.refuse, body), nowMs());
        break;
      case "here":
        this.#announcements.here(words, body);
        break;
      case "who":
        this.#announcements.answerWho(readName(from), readName(third), true);
        break;
      case "compare":
        this.#announcements.compared(readName(from), readBody(Bodies.compare, body));
        break;
      case "differs":
        remoteAgents.doubtAt(readName(third), readName(from), nowMs());
        break;
      case "claimed":
        this.#claims.answered(token, readBody(Bodies.claimed, body));
        break;
      case "older":
        this.holdings.superseded(from, readCount(third));
        break;
    }
  }

  #toAll({ notices, lockout, usernameLockout }: Shared, { payload }: Delivery): void {
    const { words, body } = decodeBusMessage(payload);
    const [kind = "", from] = words;
    const node = readName(from);
    const { nowMs } = this.#parts;
    if (node === this.#subjects.node) return;
    switch (kind) {
      case "hello":
        this.#hello(node, body);
        break;
      case "bye":
        this.membership.bye(node);
        break;
      case "notice":
        notices.hear(readBody(Bodies.notice, body).notices ?? []);
        break;
      case "holding":
        for (const { agentId, epoch: loginNumber } of readBody(Bodies.holding, body).agents) {
          this.holdings.namedBy(agentId, node, loginNumber);
        }
        break;
      case "failed": {
        const failed = readBody(Bodies.failed, body);
        if ("address" in failed) lockout.failElsewhere(failed.address, nowMs());
        else usernameLockout.failElsewhere(failed.name, nowMs());
        break;
      }
      case "who":
        this.#announcements.answerWho(node, readBody(Bodies.who, body).userId, false);
        break;
      case "known":
        usernameLockout.succeedElsewhere(readBody(Bodies.known, body).pair);
        break;
    }
  }

  #hello(node: string, body: Uint8Array): void {
    const { isBack, isReady = false, ...figures } = readBody(Bodies.hello, body);
    this.membership.hello(node, { ...figures, isReady }, isBack);
  }

  /** The engine is back. */
  #returned(): void {
    this.membership.returned();
    this.holdings.announceAll();
    this.#hub.remoteAgents.doubt(this.#parts.nowMs());
    this.membership.sayHello(true);
  }
}
