/**
 * Make before break on Node: the agent's side of protocol's MovingLink. This is not in the core,
 * because boards can hold only one connection and have no bytes to spare.
 */
import { authFailure, MAX_ASKED_WAIT_MS } from "@blindrelay/protocol";
import { type LoginAnswer, MovingLink, type MovingSide } from "@blindrelay/protocol/moving-link";
import { decodeForAgent, encodeAgentAuth } from "@blindrelay/protocol/wire";
import type { LinkOptions } from "../core/link.ts";
import type { Link, LinkEvents, LinkPort } from "../ports.ts";

/** How long a node that has handed the agent over may take to close its link. */
const LEAVE_MS = 2000;
/** The relay's own messages are shorter, and only those are read here. */
const MAX_NOTICE_LENGTH = 512;

/** A subset of the core's options; `ports.link` makes the links. */
type MovingOptions = Pick<
  LinkOptions,
  "agentId" | "relayToken" | "runtime" | "firmwareVersion" | "ports"
>;

/** A LinkPort with links that survive the restart of their node. */
export const movingLinks = (options: MovingOptions): LinkPort => ({
  connect: (url, events) => new AgentSide(url, events, options),
});

class AgentSide implements Link, MovingSide {
  readonly takesOver = true;
  private readonly events: LinkEvents;
  private readonly options: MovingOptions;
  private readonly link: MovingLink;
  /** A second link has logged in, or may have, and so is what replaces this one. */
  private replacesItself = false;
  private sessionToken: string | null = null;
  private triedSession = false;
  /** The notice of the restart, which the core needs if the link ends before another is asked. */
  private notice: string | null = null;

  constructor(url: string, events: LinkEvents, options: MovingOptions) {
    this.events = events;
    this.options = options;
    this.link = new MovingLink(url, options.ports, this);
  }

  send(text: string): void {
    this.link.send(text);
  }

  queuedBytes(): number {
    return this.link.queuedBytes();
  }

  close(code: number, reason: string): void {
    this.notice = null;
    this.link.close(code, reason);
  }

  opened(): void {
    this.events.opened();
  }

  received(text: string): void {
    const message = isNotice(text) ? decodeForAgent(text) : null;
    if (message?.kind === "error" && message.code === "RESTARTING") {
      const waitMs = Math.min((message.reconnectIn ?? 0) * 1000, MAX_ASKED_WAIT_MS);
      if (this.link.isSettled && this.link.moveIn(waitMs)) this.notice = text;
    } else if (message?.kind === "error" && message.code === "REPLACED" && this.replacesItself) {
      // Replaced by our own second link, even if that one has ended meanwhile.
    } else {
      if (message?.kind === "authenticated") this.sessionToken = message.sessionToken;
      this.events.received(text);
    }
  }

  receivedLeft(text: string): void {
    this.replacesItself = true;
    this.received(text);
    this.replacesItself = false;
  }

  closed(_link: MovingLink, code: number, reason: string): void {
    if (this.notice !== null) this.events.received(this.notice);
    this.events.closed(code, reason);
  }

  moving(): void {
    this.notice = null;
    this.replacesItself = true;
    this.triedSession = this.sessionToken !== null;
  }

  login(next: Link): void {
    const { agentId, relayToken, runtime, firmwareVersion = null } = this.options;
    const token = this.triedSession ? (this.sessionToken as string) : relayToken;
    next.send(encodeAgentAuth(token, this.triedSession, agentId, runtime, firmwareVersion));
  }

  answered(text: string): LoginAnswer {
    const message = decodeForAgent(text);
    if (message.kind === "authenticated") {
      this.sessionToken = message.sessionToken;
      return "accepted";
    }
    if (message.kind !== "authFailed") return null;
    const failure = authFailure(message.code);
    if (failure.dropsSession) this.sessionToken = null;
    if (this.triedSession && failure.dropsSession && (message.retryAfter ?? 0) <= 0) {
      // The connection stays open for an attempt with the other token (section 3).
      this.triedSession = false;
      return "again";
    }
    // Otherwise the core knows how long to wait, once the first link has ended.
    return failure.course === "backoff" ? "failed" : "refused";
  }

  moved(): number {
    this.replacesItself = false;
    return LEAVE_MS;
  }
}

/** Avoids parsing packets twice. */
const isNotice = (text: string): boolean =>
  text.length <= MAX_NOTICE_LENGTH && /RESTARTING|REPLACED|"auth_response"/.test(text);
