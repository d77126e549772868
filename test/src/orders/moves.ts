/** What a history is made of, and how much of it there may be. */

/** How much may happen in one history. */
export interface Bounds {
  readonly clients: number;
  /** Calls that each client makes. */
  readonly calls: number;
  readonly restarts: number;
  /** Times at which WAIT_MS pass. */
  readonly waits: number;
  /** W, the sessions that an epoch stores. */
  readonly window: number;
  /** Sessions held at once. */
  readonly places: number;
  /** Whether the digests of spent `A`s are all alike, which may cost time and nothing else. */
  readonly collide: boolean;
}

/**
 * What may happen next, with a client's number first. The packets of a client are told apart by
 * `seq` (0: its opening), those of an agent by boot, epoch and `seq` (0: the answer).
 */
export type Move =
  | readonly ["open" | "call", client: number]
  | readonly ["toAgent", client: number, seq: number]
  | readonly ["toClient", client: number, boot: number, epoch: number, seq: number]
  | readonly ["forget", client: number, boot: number, epoch: number]
  | readonly ["restart"]
  | readonly ["wait"];
