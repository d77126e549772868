/** What a live run checks: its oracles, and the first violation, which ends the run. */
import type { OracleResult } from "../report/report.ts";

const HOLDS = {
  liveness: "without faults no call failed once the fleet was whole",
  revoked: "no device acted after its token was revoked",
  "exactly-once": "each device on Node executed every answered call once, by its own count",
  presence: "the relay's list of online agents agreed with the fleet at the end",
  bounds: "the relay's queues and bindings stayed within their bounds",
  blind: "the relay stored no end-to-end secret",
};

type LiveOracle = keyof typeof HOLDS;

export class LiveOracles {
  private readonly stop: (reason: Error) => void;
  private violation: { oracle: LiveOracle; detail: string } | null = null;
  /** Oracles that had something to check. */
  private readonly checked = new Set<LiveOracle>(["liveness", "revoked"]);

  /** `stop`: ends the run. */
  constructor(stop: (reason: Error) => void) {
    this.stop = stop;
  }

  /** The oracle had something to check. */
  markChecked(oracle: LiveOracle): void {
    this.checked.add(oracle);
  }

  violate(oracle: LiveOracle, detail: string): void {
    this.violation ??= { oracle, detail };
    this.stop(new Error(`the oracle "${oracle}": ${detail}`));
  }

  /**
   * `leak`: the file of our own relay's store that contained a secret; null for an external relay.
   */
  results(leak: { found: string | null } | null): OracleResult[] {
    const { violation, checked } = this;
    return Object.entries(HOLDS).flatMap(([name, holds]) => {
      if (violation?.oracle === name) return [{ name, ok: false, detail: violation.detail }];
      if (name !== "blind") {
        return checked.has(name as LiveOracle) ? [{ name, ok: true, detail: holds }] : [];
      }
      if (leak === null) return []; // an external store cannot be read
      return [{ name, ok: leak.found === null, detail: leak.found ?? holds }];
    });
  }
}
