/**
 * What section 2 allows each side to do with a packet, observed from outside: the oracle knows what
 * was sealed by whom, and derives from that alone what must happen to any text. It predicts every
 * verdict, so refusing a packet that should have been accepted is a violation too.
 *
 *   at the agent                                     must be
 *   anything no client sealed for this agent         refused
 *   an opening                                       answered: the held session's A, else this
 *                                                    epoch's, after its move if C is spent in it
 *   data of a held session, seq above the mark       accepted, with its gap
 *   data of a held session, seq at or below it       refused
 *   data of C.A, A of this life and of this epoch
 *     or the one before, never stored, no session
 *     of C held                                      accepted, stored; the last that an epoch can
 *                                                    store ends it
 *   other data that a client sealed                  answered as its opening would be
 *
 *   at the client
 *   anything this agent did not seal, another's C    refused, nothing changes
 *   the first answer to the current C                accepted; only a ping until its pong
 *   the same answer again                            refused
 *   another answer to the current C                  C abandoned
 *   data of the current C.A                          accepted once, in order, with its gap
 */
import { SESSION_IDLE_MS } from "@blindrelay/protocol";
import { asciiText } from "@blindrelay/protocol/crypto";
import { type AgentVerdict, CLOSE_NOTICE, type ClientEffect } from "@blindrelay/protocol/session";
import { type PacketText, placeOf, readPacket } from "./packet-text.ts";
import type { AgentObserver, ClientObserver, ClientStand } from "./taps.ts";

interface Sealed {
  readonly p: string;
  /** Unknown for openings, answers and the first ping. */
  readonly plaintext: Uint8Array | null;
  readonly by: string;
}

/** An agent's answer: in which life, and in which of its epochs. */
interface Minted {
  readonly life: number;
  readonly epoch: number;
}

interface Life {
  readonly number: number;
  readonly window: number;
  epoch: number;
  /** Sessions that the current epoch, and the one before it, may still store. */
  room: number;
  roomBefore: number;
  secret: string;
}

const moveEpoch = (life: Life): void => {
  life.epoch++;
  life.room = life.window;
  life.roomBefore = life.window;
};

const storeIn = (life: Life, epoch: number): void => {
  if (epoch !== life.epoch) life.roomBefore--;
  else if (life.room > 1) life.room--;
  else moveEpoch(life);
};

const isClose = (plaintext: Uint8Array): boolean => asciiText(plaintext) === CLOSE_NOTICE;

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

export class SessionOracle {
  private readonly violate: (what: string) => void;
  /** The agent that a client meant by its C, from its opening's envelope. */
  private readonly agentOf: (first: string) => string | null;
  private readonly byClients = new Map<string, Sealed>();
  private readonly byAgents = new Map<string, Sealed>();
  private readonly minted = new Map<string, Minted>();
  /** Last accepted seq and its time, by sid: at agents, over all their lives; at clients. */
  private readonly agentMarks = new Map<string, { seq: number; at: number }>();
  private readonly clientMarks = new Map<string, number>();
  private readonly opened = new Set<string>();
  /** The secret behind a C, and behind an agent's answer to it. */
  private readonly secretOf = new Map<string, string>();
  private readonly answerSecretOf = new Map<string, string>();
  private readonly answerOf = new Map<string, string>();
  private readonly lives = new Map<string, Life>();
  /** Sids that a side has closed, and those whose close an agent has received. */
  private readonly closedByClients = new Set<string>();
  private readonly closedByAgents = new Set<string>();
  private readonly heardClosed = new Set<string>();
  readonly counters = { accepted: 0, answered: 0, refused: 0, abandoned: 0, missing: 0 };

  constructor(violate: (what: string) => void, agentOf: (first: string) => string | null) {
    this.violate = violate;
    this.agentOf = agentOf;
  }

  /** An observer for one life of an agent. */
  agent(agentId: string, maxSessions: number, window: number): AgentObserver {
    const number = (this.lives.get(agentId)?.number ?? 0) + 1;
    const life: Life = { number, window, epoch: 0, room: window, roomBefore: 0, secret: "" };
    this.lives.set(agentId, life);
    return {
      received: (secret, before, after, text, now, verdict) => {
        life.secret = secret;
        this.agentReceived(agentId, life, before, text, now, verdict);
        this.checkTable(agentId, before, after, now, verdict, maxSessions);
        this.checkClosed(agentId, before, after, now, verdict);
      },
      sealed: (plaintext, text) => {
        this.register(this.byAgents, agentId, text, plaintext);
        this.checkLast(this.closedByAgents, agentId, text, plaintext);
      },
    };
  }

  client(name: string): ClientObserver {
    return {
      acted: (before, after, text, effects) => {
        if (after.first !== null) this.secretOf.set(after.first, after.secret);
        for (const effect of effects)
          if (effect.kind === "send") this.clientSent(name, effect.text);
        if (text !== null) this.clientReceived(name, before, after, text, effects);
      },
      sealed: (plaintext, text) => {
        this.register(this.byClients, name, text, plaintext);
        this.checkLast(this.closedByClients, name, text, plaintext);
        this.checkOpened(name, text);
      },
    };
  }

  private register(
    writeBehind: Map<string, Sealed>,
    by: string,
    text: string,
    plaintext: Uint8Array | null,
  ): void {
    const packet = readPacket(text);
    if (packet === null) {
      this.violate(`${by} wrote a packet that is none: ${text}`);
      return;
    }
    const known = writeBehind.get(placeOf(packet));
    if (known !== undefined && known.p !== packet.p) this.violate(`${by} sealed ${text} anew`);
    if (known === undefined) writeBehind.set(placeOf(packet), { p: packet.p, plaintext, by });
  }

  private wasSealed(writeBehind: Map<string, Sealed>, packet: PacketText): Sealed | null {
    const sealed = writeBehind.get(placeOf(packet));
    return sealed !== undefined && sealed.p === packet.p ? sealed : null;
  }

  // The agent's side

  private agentReceived(
    agentId: string,
    life: Life,
    before: readonly string[],
    text: string,
    now: number,
    verdict: AgentVerdict,
  ): void {
    if (verdict.kind === "waits") return; // it is received once more
    const packet = readPacket(text);
    const sealed = packet === null ? null : this.wasSealed(this.byClients, packet);
    const forIt =
      packet !== null &&
      this.agentOf(packet.first) === agentId &&
      this.secretOf.get(packet.first) === life.secret;
    if (sealed === null || !forIt) {
      if (verdict.kind !== "refused") {
        this.violate(`${agentId} took (${verdict.kind}) what no client sealed for it: ${text}`);
      }
      this.counters.refused++;
      return;
    }
    const live = before.filter(
      (sid) => now - (this.agentMarks.get(sid)?.at ?? 0) < SESSION_IDLE_MS,
    );
    const heldSid = live.find((sid) => sid.split(".")[0] === packet.first) ?? null;
    const mint = this.minted.get(packet.sid);
    const held = heldSid === packet.sid;
    const isOpenEpoch =
      mint?.life === life.number &&
      (mint.epoch === life.epoch || (mint.epoch === life.epoch - 1 && life.roomBefore > 0));
    const spent = this.agentMarks.has(packet.sid);
    const fresh = heldSid === null && isOpenEpoch && !spent && packet.seq > 0;
    const mark = held ? (this.agentMarks.get(packet.sid)?.seq ?? 0) : 0;
    const where = `${agentId}, life ${life.number}, ${placeOf(packet)}`;

    if (!held && verdict.kind === "refused" && verdict.reason === "rate") {
      this.counters.refused++;
    } else if (held ? packet.seq > mark : fresh) {
      this.mustAccept(where, packet, sealed, mark, now, verdict);
      if (fresh) storeIn(life, mint.epoch);
    } else if (held) {
      if (verdict.kind !== "refused") this.violate(`${where}: seq ${packet.seq} not above ${mark}`);
      this.counters.refused++;
    } else if (verdict.kind === "answer") {
      this.answered(where, agentId, life, packet, heldSid, verdict.text);
    } else {
      this.violate(`${where}: ${verdict.kind} instead of an answer`);
    }
  }

  private mustAccept(
    where: string,
    packet: PacketText,
    sealed: Sealed,
    mark: number,
    now: number,
    verdict: AgentVerdict,
  ): void {
    if (verdict.kind !== "message") {
      this.violate(`${where}: a good packet was not accepted (${verdict.kind})`);
      return;
    }
    if (verdict.sid !== packet.sid) this.violate(`${where}: accepted as of ${verdict.sid}`);
    if (verdict.gap !== packet.seq - mark - 1)
      this.violate(`${where}: gap ${verdict.gap} reported`);
    if (sealed.plaintext !== null && !sameBytes(verdict.plaintext, sealed.plaintext)) {
      this.violate(`${where}: another plaintext`);
    }
    const everBefore = this.agentMarks.get(packet.sid)?.seq ?? 0;
    if (packet.seq <= everBefore) this.violate(`${where}: accepted again`);
    this.agentMarks.set(packet.sid, { seq: packet.seq, at: now });
    this.counters.accepted++;
  }

  private answered(
    where: string,
    agentId: string,
    life: Life,
    packet: PacketText,
    heldSid: string | null,
    text: string,
  ): void {
    const answer = readPacket(text);
    if (heldSid === null && this.storedIn(life, packet.first)) moveEpoch(life);
    this.register(this.byAgents, agentId, text, null);
    this.answerSecretOf.set(packet.first, life.secret);
    this.counters.answered++;
    if (answer === null || answer.seq !== 0 || answer.first !== packet.first) {
      this.violate(`${where}: answered with ${text}`);
    } else if (heldSid !== null && answer.sid !== heldSid) {
      this.violate(`${where}: answered ${answer.sid} while ${heldSid} is held`);
    } else if (!this.minted.has(answer.sid)) {
      this.minted.set(answer.sid, { life: life.number, epoch: life.epoch });
    } else if (heldSid === null) {
      const { life: atLife, epoch } = this.minted.get(answer.sid) as Minted;
      if (atLife !== life.number || epoch !== life.epoch) {
        this.violate(`${where}: ${answer.sid} of life ${atLife}, epoch ${epoch} answered again`);
      }
    }
  }

  /** Whether a session of this C was stored in the current epoch. */
  private storedIn(life: Life, first: string): boolean {
    for (const sid of this.agentMarks.keys()) {
      const mint = this.minted.get(sid);
      if (mint?.life === life.number && mint.epoch === life.epoch && sid.startsWith(`${first}.`))
        return true;
    }
    return false;
  }

  /** Only an accepted first packet adds a session, one for each C, and all within their time. */
  private checkTable(
    agentId: string,
    before: readonly string[],
    after: readonly string[],
    now: number,
    verdict: AgentVerdict,
    maxSessions: number,
  ): void {
    const added = after.filter((sid) => !before.includes(sid));
    const expected = verdict.kind === "message" && verdict.fresh ? [verdict.sid] : [];
    if (added.join() !== expected.join()) this.violate(`${agentId} stored ${added.join()}`);
    if (new Set(after.map((sid) => sid.split(".")[0])).size !== after.length) {
      this.violate(`${agentId} holds two sessions of one C`);
    }
    if (after.length > maxSessions) this.violate(`${agentId} holds ${after.length} sessions`);
    if (verdict.kind === "refused") return;
    for (const sid of after) {
      const idleMs = now - (this.agentMarks.get(sid)?.at ?? 0);
      if (idleMs >= SESSION_IDLE_MS) this.violate(`${agentId} holds ${sid}, idle for ${idleMs} ms`);
    }
  }

  /** After its `system.close`, a side seals nothing in that session. */
  private checkLast(closed: Set<string>, by: string, text: string, plaintext: Uint8Array): void {
    const sid = readPacket(text)?.sid ?? "";
    if (closed.has(sid)) this.violate(`${by} sealed in ${sid} after its last packet`);
    if (isClose(plaintext)) closed.add(sid);
  }

  /**
   * A session that its client closed is forgotten. One may be dropped for lack of room only by the
   * first packet of another, and its client is notified.
   */
  private checkClosed(
    agentId: string,
    before: readonly string[],
    after: readonly string[],
    now: number,
    verdict: AgentVerdict,
  ): void {
    for (const sid of before) {
      if (this.heardClosed.has(sid)) this.violate(`${agentId} holds ${sid}, which was closed`);
      const idleMs = now - (this.agentMarks.get(sid)?.at ?? 0);
      if (after.includes(sid) || idleMs >= SESSION_IDLE_MS) continue;
      const stores = verdict.kind === "message" && verdict.fresh;
      if (!stores) this.violate(`${agentId} dropped ${sid} for no reason`);
      if (!this.closedByAgents.has(sid)) this.violate(`${agentId} dropped ${sid} without notice`);
    }
    if (verdict.kind === "message" && isClose(verdict.plaintext)) this.heardClosed.add(verdict.sid);
  }

  // The client's side

  private clientSent(name: string, text: string): void {
    this.register(this.byClients, name, text, null);
    const packet = readPacket(text);
    if (packet !== null && packet.seq > 1) this.checkOpened(name, text);
  }

  private checkOpened(name: string, text: string): void {
    const packet = readPacket(text);
    if (packet !== null && !this.opened.has(packet.sid)) {
      this.violate(`${name} sent ${placeOf(packet)} before the answer to its first ping`);
    }
  }

  private clientReceived(
    name: string,
    before: ClientStand,
    after: ClientStand,
    text: string,
    effects: readonly ClientEffect[],
  ): void {
    const packet = readPacket(text);
    const sealed = packet === null ? null : this.wasSealed(this.byAgents, packet);
    const taken = effects.some((effect) => effect.kind !== "refused");
    if (
      packet === null ||
      sealed === null ||
      sealed.by !== this.agentOf(packet.first) ||
      this.answerSecretOf.get(packet.first) !== before.secret ||
      packet.first !== before.first
    ) {
      if (taken) this.violate(`${name} took what is not for it: ${text}`);
      if (after.sid !== before.sid || after.first !== before.first) {
        this.violate(`${name} was moved by what is not for it: ${text}`);
      }
      this.counters.refused++;
      return;
    }
    if (packet.seq === 0) this.clientAnswered(name, before, after, packet, taken);
    else this.clientData(name, before, packet, sealed, effects, taken);
  }

  private clientAnswered(
    name: string,
    before: ClientStand,
    after: ClientStand,
    packet: PacketText,
    taken: boolean,
  ): void {
    const known = this.answerOf.get(packet.first);
    if (before.sid === null) {
      if (known !== undefined) this.violate(`${name} has ${packet.first} in use again`);
      if (after.sid !== packet.sid) this.violate(`${name} did not take the answer ${packet.sid}`);
      this.answerOf.set(packet.first, packet.sid);
    } else if (before.sid === packet.sid) {
      if (taken) this.violate(`${name} took the answer ${packet.sid} twice`);
      this.counters.refused++;
    } else {
      if (after.first === packet.first) {
        this.violate(`${name} keeps ${packet.first} after another answer, as ${after.sid}`);
      }
      this.counters.abandoned++;
    }
  }

  private clientData(
    name: string,
    before: ClientStand,
    packet: PacketText,
    sealed: Sealed,
    effects: readonly ClientEffect[],
    taken: boolean,
  ): void {
    const mark = this.clientMarks.get(packet.sid) ?? 0;
    const where = `${name}, ${placeOf(packet)}`;
    if (packet.sid !== before.sid || packet.seq <= mark) {
      if (taken) this.violate(`${where}: accepted, with ${before.sid} current and mark ${mark}`);
      this.counters.refused++;
      return;
    }
    if (!taken) this.violate(`${where}: a good packet was not accepted`);
    this.clientMarks.set(packet.sid, packet.seq);
    this.counters.accepted++;
    for (const effect of effects) {
      if (effect.kind === "opened") this.opened.add(packet.sid);
      if (effect.kind !== "message" && effect.kind !== "opened") continue;
      this.counters.missing += packet.seq - mark - 1;
      if (effect.gap !== packet.seq - mark - 1)
        this.violate(`${where}: gap ${effect.gap} reported`);
      if (effect.kind === "opened" || sealed.plaintext === null) continue;
      if (!sameBytes(effect.plaintext, sealed.plaintext)) {
        this.violate(`${where}: another plaintext`);
      }
    }
  }
}
