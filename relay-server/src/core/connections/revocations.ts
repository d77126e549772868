/**
 * Rotation, deletion and disabling take effect at once. A look-up in progress at that
 * moment may return outdated data; this remembers enough to detect that.
 */

export type Revocation =
  | { kind: "agent"; agentId: string }
  | { kind: "clients"; userId: string }
  | { kind: "user"; userId: string }
  | { kind: "session"; sessionHash: string }
  | { kind: "key"; keyId: string };

/** A look-up older than this many revocations is distrusted without checking which they were. */
const KEPT = 1000;

export class Revocations {
  readonly #recent: Revocation[] = [];
  #count = 0;

  /** Taken when a look-up starts; handed to `since` when its answer comes. */
  mark(): number {
    return this.#count;
  }

  add(revocation: Revocation): void {
    this.#recent.push(revocation);
    this.#count += 1;
    if (this.#recent.length > KEPT) {
      this.#recent.shift();
    }
  }

  /**
   * Whether any revocation since the mark concerns this look-up; true if that is no longer known.
   */
  since(mark: number, concerns: (revocation: Revocation) => boolean): boolean {
    const count = this.#count - mark;
    return !this.knows(mark) || (count > 0 && this.#recent.slice(-count).some(concerns));
  }

  /** Whether everything that was revoked since the mark is still known. */
  knows(mark: number): boolean {
    return this.#count - mark <= this.#recent.length;
  }
}

/** What a revocation may concern: a connection, or what is being looked up. */
interface Concerned {
  readonly role: "client" | "agent";
  /** Null: nobody's. */
  readonly userId: string | null;
  /** Absent for an agent that has no link. */
  readonly sessionHash?: string;
  /** Present for agents. */
  readonly agentId?: string;
  /** Present for clients that came in with an access key. */
  readonly key?: { readonly id: string } | null | undefined;
}

export const concerns = (revocation: Revocation, who: Concerned): boolean => {
  switch (revocation.kind) {
    case "agent":
      return who.agentId === revocation.agentId;
    case "clients":
      // An access key outlives the account token and the password.
      return who.role === "client" && who.userId === revocation.userId && who.key == null;
    case "user":
      return who.userId === revocation.userId;
    case "session":
      return who.sessionHash === revocation.sessionHash;
    case "key":
      return who.key?.id === revocation.keyId;
  }
};
