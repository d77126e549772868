/** The sections, by the names that `--only` takes. */
import type { Load } from "./generator/messages.ts";

export interface Scenario {
  readonly name: string;
  readonly what: string;
  readonly pairs: number;
  readonly load: Load;
  /** Bytes of the whole packet as JSON. */
  readonly bytes: number;
}

/** c: one in flight for each pair, w: several, so that they are batched; k: kilobytes. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "c1",
    what: "100 pairs, 1 in flight, 256 B",
    pairs: 100,
    load: { window: 1 },
    bytes: 256,
  },
  { name: "w4", what: "50 pairs, 4 in flight, 256 B", pairs: 50, load: { window: 4 }, bytes: 256 },
  {
    name: "w16",
    what: "20 pairs, 16 in flight, 256 B",
    pairs: 20,
    load: { window: 16 },
    bytes: 256,
  },
  {
    name: "k16",
    what: "50 pairs, 1 in flight, 16 KB",
    pairs: 50,
    load: { window: 1 },
    bytes: 16_384,
  },
  {
    name: "rate",
    what: "100 pairs, 2,000 messages a second in both directions, 256 B",
    pairs: 100,
    load: { perSecond: 2_000 },
    bytes: 256,
  },
];

/** These need servers. */
export const SERVER_IDS = [...SCENARIOS.map(({ name }) => name), "connect", "growth", "memory"];
export const SECTION_IDS = [...SERVER_IDS, "serial", "packets", "world"];
