/**
 * Which of a user's agents are online on which node, told to the nodes with clients of that user.
 * Each node announces its own; what is lost is found by comparing (anti-entropy.ts).
 */
import type { OnlineAgent } from "../core/bus.ts";
import type { Hub } from "../core/hub.ts";
import { digestOf, Rounds, USERS_PER_MESSAGE } from "./anti-entropy.ts";
import { AGENTS_PER_MESSAGE, Bodies, readBody, readCount, readName } from "./bodies.ts";
import { decodeBusMessage } from "./head.ts";
import type { Subjects } from "./subjects.ts";
import type { Delivery } from "./transport.ts";

interface AnnouncementsParts {
  readonly subjects: Subjects;
  readonly hub: () => Hub;
  readonly nowMs: () => number;
  /** Whether a node was heard from recently. */
  readonly isLive: (node: string) => boolean;
}

export class Announcements {
  readonly #parts: AnnouncementsParts;
  /** For each user with clients here: unsubscribes from the user's subject. */
  readonly #users = new Map<string, () => void>();
  readonly #rounds = new Rounds();

  constructor(parts: AnnouncementsParts) {
    this.#parts = parts;
  }

  clientsOnline(userId: string): void {
    const { subjects } = this.#parts;
    const unsubscribe = subjects.listen(`u.${userId}`, (delivery) => this.#toUser(delivery));
    this.#users.set(userId, unsubscribe);
    subjects.tellAll("who", { userId });
  }

  clientsOffline(userId: string): void {
    this.#users.get(userId)?.();
    this.#users.delete(userId);
  }

  agentOnline(userId: string, agent: OnlineAgent): void {
    this.#sayHere(`u.${userId}`, userId, [agent], true);
  }

  agentOffline(userId: string, agentId: string, loginNumber: number, moving: boolean): void {
    const { subjects } = this.#parts;
    const words = ["gone", subjects.node, userId, agentId, loginNumber, Number(moving)];
    subjects.publish(`u.${userId}`, words);
  }

  /** Asks a node for the agents of all users with clients here. */
  ask(node: string): void {
    const { subjects } = this.#parts;
    for (const userId of this.#users.keys()) subjects.tell(node, ["who", subjects.node, userId]);
  }

  answerWho(node: string, userId: string, isNews: boolean): void {
    const { hub, nowMs } = this.#parts;
    const agents = hub().agentsOf(userId, nowMs());
    for (let at = 0; at < agents.length; at += AGENTS_PER_MESSAGE) {
      this.#sayHere(`n.${node}.0`, userId, agents.slice(at, at + AGENTS_PER_MESSAGE), isNews);
    }
  }

  /**
   * `here`: a node's agents of one user. If that node is gone, this is late, and nothing would end
   * them again; a node that is back is asked for its agents.
   */
  here(words: readonly string[], body: Uint8Array): void {
    const { hub, nowMs, isLive } = this.#parts;
    const [, node, userId, isNews] = words;
    const agents = readBody(Bodies.here, body).map(({ epoch, ...agent }) => ({
      ...agent,
      loginNumber: epoch,
    }));
    const [user, from] = [readName(userId), readName(node)];
    if (isLive(from)) hub().remoteAgents.online(user, from, agents, isNews === "1", nowMs());
  }

  /** Asks the other nodes whether some users' agents there are the ones known here. */
  compare(nodes: Iterable<string>): void {
    const { subjects, hub } = this.#parts;
    const users = this.#rounds.next(this.#users);
    const known = users.map((userId) => hub().remoteAgents.loginsOf(userId));
    for (const node of nodes) {
      const said = users.map((userId, at) => ({
        userId,
        digest: digestOf(known[at]?.get(node) ?? []),
      }));
      for (let at = 0; at < said.length; at += USERS_PER_MESSAGE) {
        const some = JSON.stringify(said.slice(at, at + USERS_PER_MESSAGE));
        subjects.tell(node, ["compare", subjects.node], some);
      }
    }
  }

  /** Another node's list of agents differs: it is sent the current ones, and forgets the rest. */
  compared(node: string, users: readonly { userId: string; digest: number }[]): void {
    const { subjects, hub, nowMs } = this.#parts;
    for (const { userId, digest } of users) {
      const agents = hub().agentsOf(userId, nowMs());
      if (digestOf(agents.map(({ loginNumber }) => loginNumber)) === digest) continue;
      subjects.tell(node, ["differs", subjects.node, userId]);
      this.answerWho(node, userId, true);
    }
  }

  #toUser({ payload }: Delivery): void {
    const { subjects, hub, nowMs } = this.#parts;
    const { words, body } = decodeBusMessage(payload);
    const [kind, node, userId, agentId, loginNumber, moving] = words;
    if (node === subjects.node) return;
    if (kind === "here") this.here(words, body);
    else if (kind === "gone") {
      const [user, agent, number] = [readName(userId), readName(agentId), readCount(loginNumber)];
      hub().remoteAgents.offline(user, agent, number, moving === "1", nowMs());
    }
  }

  #sayHere(subject: string, userId: string, agents: readonly OnlineAgent[], isNews: boolean): void {
    const { subjects } = this.#parts;
    const said = agents.map(({ loginNumber, ...agent }) => ({ ...agent, epoch: loginNumber }));
    subjects.publish(
      subject,
      ["here", subjects.node, userId, Number(isNews)],
      JSON.stringify(said),
    );
  }
}
