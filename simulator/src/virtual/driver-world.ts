/** What drivers need from their world. */
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { OracleName } from "../oracle/names.ts";
import type { ClientWorld } from "./client.ts";
import type { Device } from "./device.ts";

export interface DriverWorld extends ClientWorld {
  readonly devices: readonly Device[];
  readonly liveness: LivenessOracle;
  violate(oracle: OracleName, detail: string): void;
}
