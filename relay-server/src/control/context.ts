/** What the control plane works with: a store, the secrets, a clock, the hub. */
import type { Lockout } from "../core/lockout.ts";
import type { Notice } from "../store/notices.ts";
import type { Store } from "../store/open.ts";
import { HashQueue } from "./hash-queue.ts";
import { KeyedMutex } from "./keyed-mutex.ts";
import { DEFAULT_QUOTAS, type Quotas } from "./quotas.ts";
import type { Secrets } from "./secrets.ts";
import { UsernameLockout } from "./username-lockout.ts";
import { WrongLogins } from "./wrong-logins.ts";

export interface ControlContext {
  readonly store: Store;
  readonly secrets: Secrets;
  /** Whether people must enrol TOTP before they may do anything else. */
  readonly totpRequired: boolean;
  readonly lockout: Lockout;
  /** Failed logins by name. */
  readonly names: UsernameLockout;
  /** Failed logins by network. */
  readonly wrongLogins: WrongLogins;
  readonly links: Links;
  /** Unix milliseconds, as the machine's clock has them: for what is kept and compared later. */
  readonly nowMs: () => number;
  /**
   * Milliseconds that no correction of that clock moves: for lockouts and other waits (clock.ts).
   */
  readonly steadyMs: () => number;
  /** Logins by address and by user, one at a time. */
  readonly mutex: KeyedMutex;
  /** Whatever hashes a password goes through it. */
  readonly hashing: HashQueue;
  readonly quotas: Quotas;
}

/** What the control plane asks of this relay and the others: who is here, and to end links. */
export interface Links {
  /** `node`: the one that the store names. */
  isOnline(agentId: string, node: string | null): boolean;
  /**
   * Does at once, on every node that can be told, what the transaction has posted; call it after
   * the commit. The hub itself handles links that were being admitted at that moment.
   */
  act(notices: readonly Notice[]): void;
}

type Made = "mutex" | "names" | "wrongLogins" | "hashing" | "quotas";

export const controlContext = (
  parts: Omit<ControlContext, Made> & { quotas?: Quotas },
): ControlContext => ({
  quotas: DEFAULT_QUOTAS,
  ...parts,
  hashing: new HashQueue(),
  names: new UsernameLockout(),
  wrongLogins: new WrongLogins(),
  mutex: new KeyedMutex(),
});
