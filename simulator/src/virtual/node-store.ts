/**
 * The store as seen by one node of a cluster: answers wait while the process is frozen, and request
 * counts are written once a second, as by the relay's write-behind.
 */
import type { Notice } from "@blindrelay/relay-server/cluster";
import type {
  AgentReport,
  AuthRequest,
  AuthResult,
  HubLookups,
  WriteBehind,
} from "@blindrelay/relay-server/core";
import type { ModelStore } from "./store.ts";

export class NodeStore implements HubLookups, WriteBehind {
  private readonly store: ModelStore;
  private readonly run: (fn: () => void) => void;
  private used = new Map<string, number>();

  /** `run`: delivers an answer, later if the node is frozen. */
  constructor(store: ModelStore, run: (fn: () => void) => void) {
    this.store = store;
    this.run = run;
  }

  authenticate(request: AuthRequest): Promise<AuthResult> {
    return this.heard(this.store.authenticate(request));
  }

  ownerOf(agentId: string): Promise<string | null> {
    return this.heard(this.store.ownerOf(agentId));
  }

  /** Asked for access keys only, and there are none here. */
  labelsOf(): null {
    return null;
  }

  reserve(sessionHash: string): Promise<number> {
    return this.heard(this.store.reserve(sessionHash));
  }

  noticesAfter(seq: number): Promise<Notice[]> {
    return this.heard(this.store.noticesAfter(seq));
  }

  saveRequestsUsed(sessionHash: string, _used: number, added: number): Promise<void> {
    this.add(sessionHash, added);
    return Promise.resolve();
  }

  agentSeen(agentId: string, nowMs: number, report: AgentReport | null): Promise<void> {
    return this.store.agentSeen(agentId, nowMs, report);
  }

  /** What could not be written is kept, except returned requests. */
  flush(): Promise<void> {
    if (this.used.size === 0) return Promise.resolve();
    const counts = this.used;
    this.used = new Map();
    return this.heard(this.store.addRequests(counts)).catch(() => {
      for (const [sessionHash, added] of counts) if (added > 0) this.add(sessionHash, added);
    });
  }

  private add(sessionHash: string, added: number): void {
    this.used.set(sessionHash, (this.used.get(sessionHash) ?? 0) + added);
  }

  private heard<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      answer.then(
        (value) => this.run(() => resolve(value)),
        (error: unknown) => this.run(() => reject(error)),
      );
    });
  }
}
