/**
 * Sessions while a new secret is on trial: packets of sids that are not held are tried under it,
 * then under the present one, unless their `A` is one of the present secret. Its first session ends
 * the trial.
 *
 * [portable]
 */
import { parsePacket } from "@blindrelay/protocol/crypto";
import type { AgentSessions, AgentVerdict } from "@blindrelay/protocol/session";
import { LOOKUPS, OPENINGS } from "@blindrelay/protocol/session";

export class SecretTrial {
  declare readonly before: AgentSessions;
  declare readonly counters: AgentSessions["counters"];
  /** Of the new secret; holds none before it is confirmed. */
  declare readonly next: AgentSessions;
  /** Makes the new secret the present one; false if it cannot. */
  declare private readonly confirm: () => boolean;

  constructor(before: AgentSessions, next: AgentSessions, confirm: () => boolean) {
    this.before = before;
    this.next = next;
    this.counters = before.counters;
    this.confirm = confirm;
    // Two secrets are no reason to work twice as much for strangers.
    next.buckets = before.buckets;
  }

  receive(text: string, now: number): AgentVerdict {
    const packet = parsePacket(text);
    if (packet === null || this.before.has(packet.sid)) return this.before.receive(text, now);
    const buckets = this.before.buckets;
    // A flood of openings must not keep out a client that has shown such an A.
    if (
      packet.second !== null &&
      buckets.take(LOOKUPS, now) &&
      this.before.epochOf(packet) !== null
    )
      return this.before.receive(text, now);
    const openings = buckets.readyAt(OPENINGS);
    const verdict = this.next.receive(text, now);
    if (verdict.kind === "message") {
      return this.confirm() ? verdict : { kind: "refused", reason: "rate" };
    }
    if (verdict.kind !== "refused" || verdict.reason !== "forged") return verdict;
    // It is charged again; an `A` of the new secret took another token.
    if (buckets.readyAt(OPENINGS) > openings) buckets.giveBack(OPENINGS);
    return this.before.receive(text, now);
  }

  resume(now: number): AgentVerdict | null {
    return this.before.resume(now);
  }

  seal(sid: string, plaintext: Uint8Array): string | null {
    return this.before.seal(sid, plaintext);
  }

  close(sid: string): void {
    this.before.close(sid);
  }

  expire(now: number): string[] {
    return this.before.expire(now);
  }

  nextExpiry(): number | null {
    return this.before.nextExpiry();
  }

  heardAt(sid: string): number | null {
    return this.before.heardAt(sid);
  }

  held(): string[] {
    return this.before.held();
  }

  end(): void {
    this.before.end();
    this.next.end();
  }
}
