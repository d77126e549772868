/**
 * Measured sizes against their limits (budgets.json), for the size tests and for `npm run bench --
 * --sizes`.
 */
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Part } from "../../build/bundle.ts";
import type { Variant } from "../../build/espruino.ts";
import { CALL_BYTES, type EspruinoSizes } from "./espruino-sizes.ts";
import type { XsSizes } from "./xs-sizes.ts";

/**
 * `over` and `under` break a limit; `slack` is so far within it that the limit is too loose: lower
 * it.
 */
type Verdict = "ok" | "over" | "under" | "slack";

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly limit: number;
  readonly bound: "at most" | "at least";
  readonly verdict: Verdict;
}

/** Sizes of calls, in bytes, whose time is limited. */
export const TIMED_BYTES = [64, CALL_BYTES, 1024];

type VariableLimits = Pick<EspruinoSizes, "loaded" | "online" | "twoSessions" | "peak">;

interface Budgets {
  readonly espruino: {
    readonly bytes: { readonly [variant in Variant]: number };
    readonly push: number;
    readonly wifi: number;
    readonly rekey: number;
    /** For the file for "2" with push and Wi-Fi. */
    readonly whole: number;
    /** By folder, for the file for "2" over WebSockets with push. */
    readonly parts: { readonly [folder: string]: number };
    readonly variables: VariableLimits;
    /** The same in the layout of a board: 32 bits, 13 bytes each. */
    readonly variables32: VariableLimits;
    readonly suite1OverSuite2: number;
    readonly msPerCall: EspruinoSizes["msPerCall"];
  };
  readonly xs: XsSizes;
}

const { espruino, xs }: Budgets = JSON.parse(
  readFileSync(new URL("../../build/budgets.json", import.meta.url), "utf8"),
);

/** The same on every machine, so its limit can be tight. */
const size = (name: string, unit: string, value: number, limit: number): Figure => ({
  ...{ name, unit, value, limit, bound: "at most" },
  verdict: !(value <= limit) ? "over" : value * 2 < limit ? "slack" : "ok",
});

/** Depends on the machine, so its limit is several times the longest that was measured. */
const time = (name: string, value: number, limit: number): Figure => ({
  ...{ name, unit: "ms", value, limit, bound: "at most" },
  verdict: value <= limit ? "ok" : "over",
});

/** As a board's Storage holds it. `over`: its transport. */
export const espruinoFile = (variant: Variant, bytes: number, over = "WebSockets"): Figure =>
  size(`Espruino file, "${variant}" over ${over}`, "bytes", bytes, espruino.bytes[variant]);

/** What push adds to such a file. */
export const espruinoPush = (variant: Variant, bytes: number, over = "WebSockets"): Figure =>
  size(`Espruino file, "${variant}" over ${over}: push adds`, "bytes", bytes, espruino.push);

/** What Wi-Fi adds to such a file. */
export const espruinoWifi = (variant: Variant, bytes: number): Figure =>
  size(`Espruino file, "${variant}": Wi-Fi adds`, "bytes", bytes, espruino.wifi);

/** What a new secret over the relay adds to such a file with push. */
export const espruinoRekey = (variant: Variant, bytes: number): Figure =>
  size(`Espruino file, "${variant}" with push: rekey adds`, "bytes", bytes, espruino.rekey);

/** The file for "2" with push and Wi-Fi. */
export const espruinoWhole = (bytes: number): Figure =>
  size('Espruino file, "2" with push and Wi-Fi', "bytes", bytes, espruino.whole);

/** The share of each folder in the file for "2" over WebSockets, push included. */
export const espruinoParts = (parts: readonly Part[]): Figure[] => {
  const bytes = new Map(Object.keys(espruino.parts).map((folder) => [folder, 0]));
  for (const part of parts) {
    const folder = basename(dirname(part.path));
    bytes.set(folder, (bytes.get(folder) ?? 0) + part.bytes);
  }
  return [...bytes].map(([folder, value]) =>
    size(`Espruino file, "2" with push: ${folder}`, "bytes", value, espruino.parts[folder] ?? 0),
  );
};

/** `sizes`: from an engine with 2,630 variables. */
export const espruinoVariables = (sizes: EspruinoSizes, bits: 32 | 64): Figure[] => {
  const limits = bits === 32 ? espruino.variables32 : espruino.variables;
  const figure = (what: string, name: keyof VariableLimits): Figure =>
    size(`Espruino, 2,630, ${bits} bits: ${what}`, "variables", sizes[name], limits[name]);
  return [
    figure("loaded", "loaded"),
    figure("online", "online"),
    figure("two sessions", "twoSessions"),
    figure("peak of a call", "peak"),
  ];
};

const msOf = ({ msPerCall }: EspruinoSizes, bytes: number): number =>
  msPerCall[bytes] ?? Number.NaN;

export const suiteRatio = (one: EspruinoSizes, two: EspruinoSizes): Figure => {
  const value = msOf(one, CALL_BYTES) / msOf(two, CALL_BYTES);
  const limit = espruino.suite1OverSuite2;
  const verdict = value >= limit ? "ok" : "under";
  return {
    name: 'Espruino: suite "1" over "2"',
    unit: "",
    value,
    limit,
    bound: "at least",
    verdict,
  };
};

/** `sizes`: with suite "2", from an engine with ample memory, which timed TIMED_BYTES. */
export const espruinoTimes = (sizes: EspruinoSizes): Figure[] =>
  TIMED_BYTES.map((bytes) =>
    time(
      `Espruino, call of ${bytes} B: processor`,
      msOf(sizes, bytes),
      espruino.msPerCall[bytes] as number,
    ),
  );

export const xsModuleFigures = (modules: XsSizes["modules"]): Figure[] =>
  (Object.keys(modules) as (keyof XsSizes["modules"])[]).map((name) =>
    size(`Moddable module ${name}`, "bytes", modules[name], xs.modules[name]),
  );

export const xsFigures = (sizes: XsSizes): Figure[] => [
  size("XS heap: loaded", "bytes", sizes.loaded, xs.loaded),
  size("XS heap: a running agent", "bytes", sizes.agent, xs.agent),
  size(
    `XS, call of ${CALL_BYTES} B: computation`,
    "steps",
    sizes.computePerCall,
    xs.computePerCall,
  ),
  size(`XS, call of ${CALL_BYTES} B: garbage`, "slots", sizes.slotsPerCall, xs.slotsPerCall),
  time(`XS, call of ${CALL_BYTES} B: processor`, sizes.msPerCall, xs.msPerCall),
];
