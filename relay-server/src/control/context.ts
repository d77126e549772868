/** What the control plane works with: a store, the secrets, clocks, the hub. */
import type { Lockout } from "../core/limits/lockout.ts";
import type { Notice } from "../store/notices.ts";
import type { Store } from "../store/open.ts";
import { HashQueue } from "./hash-queue.ts";
import { KeyedMutex } from "./keyed-mutex.ts";
import { LoginOrder } from "./login-order.ts";
import { DEFAULT_QUOTAS, type Quotas } from "./quotas.ts";
import type { Secrets } from "./secrets.ts";
import { UsernameLockout } from "./username-lockout.ts";

export interface ControlContext {
  readonly store: Store;
  readonly secrets: Secrets;
  /** Whether users must enrol TOTP before they may do anything else. */
  readonly totpRequired: boolean;
  readonly lockout: Lockout;
  /** Failed logins by name. */
  readonly usernameLockout: UsernameLockout;
  /** Failed logins by network. */
  readonly loginOrder: LoginOrder;
  readonly links: Links;
  /** Unix milliseconds by the store's clock (store/clock.ts): for what is stored and compared. */
  readonly nowMs: () => number;
  /** Milliseconds of a clock that is never corrected: for lockouts and other waits (clock.ts). */
  readonly steadyMs: () => number;
  /** Serializes logins by address and by user. */
  readonly mutex: KeyedMutex;
  /** Used for every password hash. */
  readonly hashing: HashQueue;
  readonly quotas: Quotas;
}

/** What the control plane needs from this relay and the others: who is online, and ending links. */
export interface Links {
  /** `node`: the one recorded in the store. */
  isOnline(agentId: string, node: string | null, userId: string): boolean;
  /**
   * Executes what the transaction has posted, at once and on every node that can be reached; call
   * it after the commit. The hub itself handles links that were being admitted at that moment.
   */
  act(notices: readonly Notice[]): void;
}

type Made = "mutex" | "usernameLockout" | "loginOrder" | "hashing" | "quotas";

export const controlContext = (
  parts: Omit<ControlContext, Made> & { quotas?: Quotas },
): ControlContext => ({
  quotas: DEFAULT_QUOTAS,
  ...parts,
  hashing: new HashQueue(),
  usernameLockout: new UsernameLockout(),
  loginOrder: new LoginOrder(),
  mutex: new KeyedMutex(),
});
