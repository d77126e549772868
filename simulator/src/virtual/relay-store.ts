/**
 * What a virtual world needs of its relay's store: credentials, owners, the hub's pending writes.
 * Answers take virtual time, and faults make them slow, fail, or lose them.
 */
import type {
  AgentReport,
  AuthRequest,
  AuthResult,
  HubLookups,
  WriteBehind,
} from "@blindrelay/relay-server/core";
import type { Stream } from "../base/random-streams.ts";
import type { Clock } from "./clock.ts";

/** Duration of a write that is flushed before it is answered. */
export const WRITE_MS = 4;
export const FLUSH_MS = 1000;

export interface StoreWatcher {
  /** Receives stored texts. */
  stored(text: string): void;
  requestsSaved(sessionHash: string, used: number): void;
  /** REST says whether an agent is online. */
  told(agentId: string, online: boolean): void;
  /** REST answers otherwise than it must. */
  failed(detail: string): void;
  /** Promises were settled. */
  stir(): void;
}

export abstract class RelayStore implements HubLookups, WriteBehind {
  latencyMs: number;
  away = 0;
  /** Share of the executed requests whose answer is lost, in parts of 2^32. */
  unsure = 0;
  /** What is under way outside of virtual time, which does not pass meanwhile. */
  working: Promise<unknown> | null = null;
  protected readonly clock: Clock;
  protected readonly draws: Stream;
  protected readonly watcher: StoreWatcher;

  constructor(clock: Clock, draws: Stream, watcher: StoreWatcher, latencyMs: number) {
    this.clock = clock;
    this.draws = draws;
    this.watcher = watcher;
    this.latencyMs = latencyMs;
  }

  /** A user is created on first use. */
  abstract accountToken(userId: string): string;
  /** Whether a new token of an agent also ends the links with the old one. */
  abstract readonly endsLinks: boolean;
  /** Creates an agent, or a new relay token for one; the old token is refused from now on. */
  abstract issueAgent(agentId: string, userId?: string): string;
  /** A power failure: what waited for the next flush is lost. */
  abstract crash(): void;
  protected abstract decide(request: AuthRequest): AuthResult | Promise<AuthResult>;
  protected abstract findOwner(agentId: string): string | null | Promise<string | null>;
  abstract saveRequestsUsed(sessionHash: string, used: number, added: number): Promise<void>;
  abstract agentSeen(
    agentId: string,
    nowMs: number,
    report: AgentReport | null,
    online: boolean,
  ): Promise<void>;

  authenticate(request: AuthRequest): Promise<AuthResult> {
    const ms = this.latencyMs + (request.apiToken === undefined ? 0 : WRITE_MS);
    return this.answer(ms, () => this.decide(request));
  }

  ownerOf(agentId: string): Promise<string | null> {
    return this.answer(this.latencyMs, () => this.findOwner(agentId));
  }

  /** Asked for access keys only, and there are none here. */
  labelsOf(): null {
    return null;
  }

  /** All rows of a real one. */
  async rows(): Promise<string[]> {
    return [];
  }

  protected answer<T>(ms: number, decide: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const answered = (answer: T): void => {
        if (this.unsure > 0 && this.draws.next() < this.unsure) reject(new Error("answer lost"));
        else resolve(answer);
      };
      this.clock.after(ms, () => {
        this.watcher.stir();
        if (this.away > 0) {
          reject(new Error("the store is unavailable"));
          return;
        }
        const answer = decide();
        if (answer instanceof Promise) this.work(answer.then(answered, reject));
        else answered(answer);
      });
    });
  }

  /** The world waits for it before anything else happens. */
  protected work(job: Promise<unknown>): void {
    const working = Promise.all([this.working, job]).then(() => {
      if (this.working === working) this.working = null;
    });
    this.working = working;
  }
}
