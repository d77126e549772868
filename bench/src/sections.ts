/** What can be measured, by the names that `--only` takes. */
import type { Load } from "./generator/messages.ts";

export interface Scenario {
  readonly name: string;
  readonly what: string;
  readonly pairs: number;
  readonly load: Load;
  /** Of the whole packet as JSON text. */
  readonly bytes: number;
}

/** c: one under way for each pair, w: several, so that they come together; k: kilobytes. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "c1",
    what: "100 pairs, 1 under way, 256 B",
    pairs: 100,
    load: { window: 1 },
    bytes: 256,
  },
  { name: "w4", what: "50 pairs, 4 under way, 256 B", pairs: 50, load: { window: 4 }, bytes: 256 },
  {
    name: "w16",
    what: "20 pairs, 16 under way, 256 B",
    pairs: 20,
    load: { window: 16 },
    bytes: 256,
  },
  {
    name: "k16",
    what: "50 pairs, 1 under way, 16 KB",
    pairs: 50,
    load: { window: 1 },
    bytes: 16_384,
  },
  {
    name: "rate",
    what: "100 pairs, 2,000 messages a second there and back, 256 B",
    pairs: 100,
    load: { perSecond: 2_000 },
    bytes: 256,
  },
];

/** Wants servers. */
export const SERVER_IDS = [...SCENARIOS.map(({ name }) => name), "connect", "growth", "memory"];
export const SECTION_IDS = [...SERVER_IDS, "packets", "world"];
