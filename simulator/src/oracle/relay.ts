/**
 * What must hold at the relay: it stores and logs nothing readable, reports presence correctly,
 * stays within its bounds, and obeys revocations.
 */
import { hash } from "node:crypto";
import { tokenProblem } from "@blindrelay/protocol";

/** A connection, as far as oracles distinguish it from others. */
export interface ObservedWire {
  who(): string;
}

export type RelayOracleName = "blind" | "presence" | "revoked" | "bounds";

/**
 * What sealed traffic never contains: JSON-RPC, plain or in base64 at any of the three offsets, and
 * end-to-end secrets.
 */
const PLAIN = ["jsonrpc", "anNvbnJwY", "pzb25ycG", "qc29ucnBj"];
const SECRET = "e2e_";
const SECRET_LENGTH = 53;

/**
 * Of the peers whose reconnection a drain spreads over five seconds or more, at most this share may
 * get the same second. The relay's spread never gives two of three the same second, nor three of
 * four to seven.
 */
const MAX_SHARE_AT_ONCE = 0.5;
const FEW = 5;
/** For one message above the queue's limit. */
const SLACK_BYTES = 65_536;

const TYPE = '{"type":"';
const TOKEN = /"(?:api_token|session_token)":"([^"]+)"/;
const AGENT = /"agent_id":"([^"]+)"/;

export interface RelayView {
  isOnline(agentId: string): boolean;
  /** One node: its presence and counts are exact at any moment. */
  readonly isAlone: boolean;
  readonly outboxBytes: number;
}

export class RelayOracle {
  private readonly violate: (oracle: RelayOracleName, what: string) => void;
  private readonly view: RelayView;
  private readonly tokenOf = new WeakMap<ObservedWire, string>();
  /** Session tokens by the credential that they were issued for. */
  private readonly sessions = new Map<string, string>();
  private readonly revoked = new Set<string>();
  private readonly endedWires = new WeakSet<ObservedWire>();
  private readonly saved = new Map<string, number>();
  private readonly sessionOf = new WeakMap<ObservedWire, string>();
  /** Packets of each session token that reached agents, since the relay last crashed. */
  private readonly requests = new Map<string, number>();
  private goodbyes = new Map<number, number>();
  private goodbyeCount = 0;

  constructor(violate: (oracle: RelayOracleName, what: string) => void, view: RelayView) {
    this.violate = violate;
    this.view = view;
  }

  /** A text that arrived at the relay. */
  received(wire: ObservedWire, text: string): void {
    this.mustBeBlind(text, `a message of ${wire.who()}`);
    if (!text.startsWith(`${TYPE}auth"`)) return;
    const token = TOKEN.exec(text)?.[1];
    if (token !== undefined) this.tokenOf.set(wire, token);
  }

  /** A text that the relay sends. */
  sent(wire: ObservedWire, text: string, queued: number): void {
    if (queued > this.view.outboxBytes + SLACK_BYTES) {
      this.violate("bounds", `${queued} bytes wait for ${wire.who()}`);
    }
    if (!text.startsWith(TYPE)) {
      if (this.endedWires.has(wire)) this.violate("revoked", `${wire.who()} was still served`);
      return;
    }
    if (text.startsWith(`${TYPE}auth_response"`)) this.answered(wire, text);
    else if (text.startsWith(`${TYPE}agent_status"`)) this.told(wire, text);
    // Who comes to a node that drains is refused in its own time.
    else if (this.sessionOf.has(wire) && text.includes('"reconnect_in":')) this.saidGoodbye(text);
  }

  private answered(wire: ObservedWire, text: string): void {
    if (text.includes('"status":"failed"')) return;
    const shown = this.tokenOf.get(wire) ?? "";
    const credential = this.sessions.get(shown) ?? shown;
    if (this.revoked.has(credential)) {
      this.violate("revoked", `${wire.who()} was accepted with a revoked credential`);
    }
    const issued = TOKEN.exec(text)?.[1];
    if (issued !== undefined && issued !== shown) this.sessions.set(issued, credential);
    this.sessionOf.set(wire, issued ?? shown);
  }

  /** A client's packet, which came on this link, reaches its agent. */
  delivered(wire: ObservedWire): void {
    const session = this.sessionOf.get(wire);
    if (session !== undefined) this.requests.set(session, (this.requests.get(session) ?? 0) + 1);
  }

  /** `agent_status` must be true when it is sent: a takeover does not change it. */
  private told(wire: ObservedWire, text: string): void {
    if (!this.view.isAlone) return;
    const agentId = AGENT.exec(text)?.[1] ?? "";
    const online = text.includes('"online":true') || text.includes('"status":"online"');
    if (online !== this.view.isOnline(agentId)) {
      this.violate(
        "presence",
        `${wire.who()} received a wrong presence: ${agentId} is ${online ? "online" : "offline"}`,
      );
    }
  }

  private saidGoodbye(text: string): void {
    const seconds = Number(/"reconnect_in":([0-9]+)/.exec(text)?.[1] ?? 0);
    this.goodbyes.set(seconds, (this.goodbyes.get(seconds) ?? 0) + 1);
    this.goodbyeCount += 1;
  }

  /** The drain is over. */
  drained(): void {
    const most = Math.max(0, ...this.goodbyes.values());
    if (this.goodbyeCount >= FEW && most > this.goodbyeCount * MAX_SHARE_AT_ONCE) {
      this.violate(
        "bounds",
        `a drain made ${most} of ${this.goodbyeCount} peers reconnect in the same second`,
      );
    }
    this.goodbyes = new Map();
    this.goodbyeCount = 0;
    if (this.view.isAlone) this.mustHaveSaved();
  }

  /** What a relay counted must be stored when it has drained. */
  private mustHaveSaved(): void {
    for (const [session, requests] of this.requests) {
      const saved = this.saved.get(hash("sha256", session)) ?? 0;
      if (saved < requests) {
        this.violate("bounds", `a drained relay stored ${saved} of ${requests} requests`);
      }
    }
  }

  /** The store received a session's request count, which never decreases, except after a crash. */
  requestsSaved(sessionHash: string, used: number): void {
    const before = this.saved.get(sessionHash) ?? 0;
    if (used < before) {
      this.violate("bounds", `a session's count of requests went back from ${before} to ${used}`);
    }
    this.saved.set(sessionHash, used);
  }

  crashed(): void {
    this.saved.clear();
    this.requests.clear();
  }

  /** This credential's revocation was acknowledged; `wires`: the open ones that used it. */
  revokedNow(token: string, wires: Iterable<ObservedWire>): void {
    this.revoked.add(token);
    for (const wire of wires) this.endedWires.add(wire);
  }

  /** A text that the relay logged or stored. */
  kept(text: string, where: string): void {
    this.mustBeBlind(text, where);
  }

  private mustBeBlind(text: string, where: string): void {
    for (const plain of PLAIN) {
      if (text.includes(plain)) this.violate("blind", `"${plain}" is readable in ${where}`);
    }
    const at = text.indexOf(SECRET);
    // Four characters also occur by chance in sealed text; with a valid checksum they do not.
    if (at >= 0 && tokenProblem(text.slice(at, at + SECRET_LENGTH), "e2e") === null) {
      this.violate("blind", `an end-to-end secret is readable in ${where}`);
    }
  }
}
