/**
 * The relay as an attacker: it admits every peer, records every packet, and delivers nothing
 * without a move. Received messages wait until `pump`, because a link never reports anything from
 * inside `connect`, `send` or `close`.
 */
import type { LinkEvents, LinkPort } from "@blindrelay/agent-sdk";
import {
  type CarriedPacket,
  type FakeLink,
  FakeRelay,
} from "@blindrelay/protocol/testing/fake-relay";
import { encodeEnvelope, PING_TEXT } from "@blindrelay/protocol/wire";
import { type PacketText, readPacket } from "./packet-text.ts";

/** The owner of a link: an agent or a client. */
export interface Party {
  readonly name: string;
  readonly isAgent: boolean;
}

/** A packet as it reached the relay. */
export interface Captured {
  readonly number: number;
  readonly from: Party;
  /** The recipient that an honest relay would choose; null: none. */
  readonly to: Party | null;
  readonly text: string;
  readonly packet: PacketText;
  /** In a relay envelope, or bare. */
  readonly enveloped: boolean;
}

interface Socket {
  readonly party: Party;
  readonly events: LinkEvents;
  readonly link: FakeLink;
  open: boolean;
}

/** The number of remembered packets; older ones are forgotten. */
const TAPE = 600;

export class MaliciousRelay {
  /** Every packet seen, oldest first. */
  readonly tape: Captured[] = [];
  /** Those that were neither delivered nor dropped. */
  waiting: Captured[] = [];
  /** Called for every packet on arrival. */
  onCaptured: (captured: Captured) => void = () => undefined;
  private readonly attempt: (act: () => void) => void;
  private readonly sockets = new Map<Party, Socket>();
  private readonly jobs: (() => void)[] = [];
  /** Each C, with the client that drew it and the agent that it is meant for. */
  private readonly routes = new Map<string, { client: Party; agent: Party | null }>();
  private readonly agents = new Map<string, Party>();
  private captured = 0;
  private requests = 0;

  /** `attempt` runs a participant's code and records what it throws. */
  constructor(attempt: (act: () => void) => void) {
    this.attempt = attempt;
  }

  addAgent(party: Party): void {
    this.agents.set(party.name, party);
  }

  /** A port through which a participant connects during one life. */
  port(party: Party): LinkPort {
    return {
      connect: (_url, events) => {
        const link = new FakeRelay({
          auth: () => link.accept(`session of ${party.name}`),
          packet: (_link, packet) => this.capture(party, packet),
        }).attach({
          send: (text) =>
            this.jobs.push(() => {
              if (socket.open) this.attempt(() => events.received(text));
            }),
          close: () => undefined,
        });
        const socket: Socket = { party, events, link, open: true };
        this.jobs.push(() => {
          if (!socket.open) return;
          this.sockets.set(party, socket);
          this.attempt(() => events.opened());
        });
        return {
          send: (text) => {
            if (socket.open) this.jobs.push(() => this.received(socket, text));
          },
          close: (code, reason) => this.end(socket, code, reason),
        };
      },
    };
  }

  /** Reads what participants sent and answers what is not a packet, until nothing is left. */
  pump(): void {
    for (let job = this.jobs.shift(); job !== undefined; job = this.jobs.shift()) job();
  }

  /** The agent that a client meant by its C; null if nobody used it. */
  agentOf(first: string): string | null {
    return this.routes.get(first)?.agent?.name ?? null;
  }

  isOnline(party: Party): boolean {
    return this.sockets.get(party)?.open === true;
  }

  /** Any text to a participant that has a link. */
  say(party: Party, text: string): void {
    const socket = this.sockets.get(party);
    if (socket?.open) this.attempt(() => socket.events.received(text));
    this.pump();
  }

  /** A packet's text to a participant, in an envelope or bare. */
  deliver(party: Party, text: string, enveloped: boolean): void {
    if (!enveloped) {
      this.say(party, text);
      return;
    }
    this.requests++;
    this.say(party, encodeEnvelope(text, party.name, `r${this.requests}`));
  }

  /** One captured packet to its recipient, whether or not it was delivered before. */
  pass(captured: Captured): void {
    this.drop(captured);
    if (captured.to !== null) this.deliver(captured.to, captured.text, captured.enveloped);
  }

  drop(captured: Captured): void {
    this.waiting = this.waiting.filter((other) => other !== captured);
  }

  /** Acts honestly for a while: everything that waits is delivered in order. */
  flow(): void {
    this.pump();
    for (let i = 0; i < 200 && this.waiting.length > 0; i++) {
      this.pass(this.waiting[0] as Captured);
    }
  }

  ping(): void {
    for (const party of [...this.sockets.keys()]) this.say(party, PING_TEXT);
  }

  /** Cuts the link; the participant is notified, unless its power is off. */
  cut(party: Party): void {
    const socket = this.sockets.get(party);
    if (socket !== undefined) this.end(socket, 1006, "");
    this.pump();
  }

  /** Forgets the link of a participant that is gone. */
  vanish(party: Party): void {
    const socket = this.sockets.get(party);
    if (socket !== undefined) socket.open = false;
    this.sockets.delete(party);
  }

  private end(socket: Socket, code: number, reason: string): void {
    this.jobs.push(() => {
      if (!socket.open) return;
      socket.open = false;
      if (this.sockets.get(socket.party) === socket) this.sockets.delete(socket.party);
      this.attempt(() => socket.events.closed(code, reason));
    });
  }

  private received(socket: Socket, text: string): void {
    if (socket.open) socket.link.receive(text);
  }

  private capture(from: Party, { text, enveloped, agentId }: CarriedPacket): void {
    const packet = readPacket(text);
    if (packet === null) throw new Error(`${from.name} wrote ${text}`);
    if (!from.isAgent && agentId !== null && !this.routes.has(packet.first)) {
      this.routes.set(packet.first, { client: from, agent: this.agents.get(agentId) ?? null });
    }
    const route = this.routes.get(packet.first);
    const to = (from.isAgent ? route?.client : route?.agent) ?? null;
    const captured: Captured = { number: this.captured, from, to, text, packet, enveloped };
    this.captured++;
    this.onCaptured(captured);
    this.tape.push(captured);
    this.waiting.push(captured);
    if (this.tape.length > TAPE) this.tape.shift();
    if (this.waiting.length > TAPE) this.waiting.shift();
  }
}
