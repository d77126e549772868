/** What the control plane works with: one store, one set of secrets, one clock, one hub. */
import type { Lockout } from "../core/lockout.ts";
import type { Store } from "../store/open.ts";
import { HashQueue } from "./hash-queue.ts";
import { KeyedMutex } from "./keyed-mutex.ts";
import { DEFAULT_QUOTAS, type Quotas } from "./quotas.ts";
import type { Secrets } from "./secrets.ts";
import { UsernameLockout } from "./username-lockout.ts";

export interface ControlContext {
  readonly store: Store;
  readonly secrets: Secrets;
  /** Whether people must enrol TOTP before they may do anything else. */
  readonly totpRequired: boolean;
  readonly lockout: Lockout;
  /** Failed logins by name. */
  readonly names: UsernameLockout;
  readonly links: Links;
  /** Unix milliseconds, as the machine's clock has them: for what is kept and compared later. */
  readonly nowMs: () => number;
  /**
   * Milliseconds that no correction of that clock moves: for lock-outs and other waits (clock.ts).
   */
  readonly steadyMs: () => number;
  /** Logins by address and by user, one at a time. */
  readonly mutex: KeyedMutex;
  /** Whatever hashes a password goes through it. */
  readonly hashing: HashQueue;
  readonly quotas: Quotas;
}

/**
 * What the control plane asks of the hub: who is here, and to end what was revoked. Called after
 * the store knows; the hub itself sees to links whose admission was under way at that moment.
 */
export interface Links {
  isOnline(agentId: string): boolean;
  /** Ends the agent's link; it may come back. */
  endAgent(agentId: string): void;
  /** Ends the agent's link and everything that led to it. */
  forgetAgent(agentId: string): void;
  /** Ends every link of a user's clients. */
  endClients(userId: string): void;
  /** Ends every link of a user: clients and agents. */
  endUser(userId: string): void;
  /** Ends the links that one session token holds. */
  endSession(sessionHash: string): void;
}

type Made = "mutex" | "names" | "hashing" | "quotas";

export const controlContext = (
  parts: Omit<ControlContext, Made> & { quotas?: Quotas },
): ControlContext => ({
  quotas: DEFAULT_QUOTAS,
  ...parts,
  hashing: new HashQueue(),
  names: new UsernameLockout(),
  mutex: new KeyedMutex(),
});
