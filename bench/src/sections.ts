/** The sections, by the names that `--only` takes. */
import type { Load } from "./generator/messages.ts";

export interface Scenario {
  readonly name: string;
  readonly pairs: number;
  readonly load: Load;
  /** Bytes of the whole packet as JSON. */
  readonly bytes: number;
}

/** c: one in flight for each pair, w: several, so that they are batched; k: kilobytes. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "c1", pairs: 100, load: { window: 1 }, bytes: 256 },
  { name: "w4", pairs: 50, load: { window: 4 }, bytes: 256 },
  { name: "w16", pairs: 20, load: { window: 16 }, bytes: 256 },
  { name: "k16", pairs: 50, load: { window: 1 }, bytes: 16_384 },
  { name: "rate", pairs: 100, load: { perSecond: 2_000 }, bytes: 256 },
];

/** As the table calls it: `100 pairs, 1 in flight, 256 B`. */
export const describeScenario = ({ pairs, load, bytes }: Scenario): string => {
  const how =
    "window" in load
      ? `${load.window} in flight`
      : `${load.perSecond.toLocaleString("en")} messages a second in both directions`;
  return `${pairs} pairs, ${how}, ${bytes < 1024 ? `${bytes} B` : `${bytes / 1024} KB`}`;
};

/** These need servers. */
export const SERVER_IDS = [...SCENARIOS.map(({ name }) => name), "connect", "growth", "memory"];
export const SECTION_IDS = [...SERVER_IDS, "serial", "packets", "world"];
