/**
 * What the builds for Espruino and Moddable cost on the installed real engines, compared with the
 * limits.
 */
import { findEspruino } from "@blindrelay/agent-sdk/engines";
import {
  espruinoFile,
  espruinoParts,
  espruinoPush,
  espruinoRekey,
  espruinoTimes,
  espruinoVariables,
  espruinoWifi,
  type Figure,
  suiteRatio,
  TIMED_BYTES,
  xsFigures,
  xsModuleFigures,
} from "@blindrelay/agent-sdk/testing/budgets";
import {
  buildEspruino,
  buildEspruinoSerial,
  buildEspruinoWifi,
  VARIANTS,
} from "@blindrelay/agent-sdk/testing/build/espruino";
import { buildXsModules, moduleBytes } from "@blindrelay/agent-sdk/testing/build/xs";
import { findXsEngine } from "@blindrelay/agent-sdk/testing/build/xs-engine";
import { measureEspruino } from "@blindrelay/agent-sdk/testing/espruino-sizes";
import { measureXs } from "@blindrelay/agent-sdk/testing/xs-sizes";
import { progress, type Report } from "./report.ts";

/** Timed calls of each size: a call takes 0.3 s in suite "1", a tenth of that in suite "2". */
const CALLS = { "1": 3, "2": 10 };

type Build = ReturnType<typeof buildEspruino>;

/** The stored bytes of a build, or how many more they are than another's. */
const bytes = ({ stored }: Build, than?: Build): number =>
  stored.length - (than?.stored.length ?? 0);

interface Skipped {
  readonly what: string;
  readonly fix: string;
}

/**
 * Measures as much as the installed engines permit. Not ok if a figure breaks its limit; skipped
 * ones do not.
 */
export async function benchSizes(): Promise<Report> {
  const figures: Figure[] = [
    ...VARIANTS.map((v) => espruinoFile(v, bytes(buildEspruino(v)))),
    ...VARIANTS.map((v) => espruinoFile(v, bytes(buildEspruinoSerial(v)), "a UART")),
    ...VARIANTS.map((v) => espruinoPush(v, bytes(buildEspruino(v, true), buildEspruino(v)))),
    ...VARIANTS.map((v) => espruinoWifi(v, bytes(buildEspruinoWifi(v), buildEspruino(v)))),
    ...VARIANTS.map((v) =>
      espruinoRekey(v, bytes(buildEspruino(v, true, true), buildEspruino(v, true))),
    ),
    ...espruinoParts(buildEspruino("2", true).parts),
  ];
  const skipped: Skipped[] = [];

  for (const [variable, bits] of [
    ["ESPRUINO_BIN_2630", 64],
    ["ESPRUINO_BIN_32", 32],
  ] as const) {
    const small = findEspruino(variable);
    if (small === null) {
      skipped.push({
        what: `Espruino with 2,630 variables of ${bits} bits: variables in use`,
        fix: `set ${variable} to an Espruino's Linux build with so many (CONTRIBUTING.md)`,
      });
    } else {
      progress(`Espruino with 2,630 variables of ${bits} bits`);
      figures.push(...espruinoVariables(await measureEspruino(small, "2", CALLS["2"]), bits));
    }
  }

  const roomy = findEspruino("ESPRUINO_BIN");
  if (roomy === null) {
    skipped.push({
      what: "Espruino: suites compared, milliseconds of a call",
      fix: "set ESPRUINO_BIN to an Espruino's Linux build",
    });
  } else {
    progress("Espruino");
    const one = await measureEspruino(roomy, "1", CALLS["1"]);
    const two = await measureEspruino(roomy, "2", CALLS["2"], TIMED_BYTES);
    figures.push(suiteRatio(one, two), ...espruinoTimes(two));
  }

  progress("XS");
  figures.push(...xsModuleFigures(moduleBytes(await buildXsModules())));
  const engine = await findXsEngine();
  if (engine.kind === "missing") {
    const fix = `${engine.reason} (wanted: Linux or macOS, cc, make)`;
    skipped.push({ what: "XS: heap and calls", fix });
  } else {
    figures.push(...xsFigures(await measureXs(engine.path)));
  }
  return report(figures, skipped);
}

const MARKS: { readonly [verdict in Figure["verdict"]]: string } = {
  ok: "",
  over: "   OVER its limit",
  under: "   UNDER its limit",
  slack: "   far within its limit: lower the limit",
};

export function report(figures: readonly Figure[], skipped: readonly Skipped[]): Report {
  const ok = figures.every(({ verdict }) => verdict === "ok" || verdict === "slack");
  const lines = [
    "What the boards' builds cost, with the limits of agent-sdk/build/budgets.json",
    "",
    HEAD,
  ];
  lines.push(...figures.map(line), "");
  lines.push(...skipped.map(({ what, fix }) => `SKIPPED  ${what}: ${fix}`));
  lines.push(ok ? "within all limits that were checked" : "over a limit", "");
  return { ok, json: { ok, figures, skipped }, text: lines.join("\n") };
}

const HEAD = columns("", "", "value", "limit").trimEnd();

function line({ name, value, unit, limit, bound, verdict }: Figure): string {
  const sign = bound === "at least" ? ">=" : "<=";
  return (
    columns(name, unit, number(value), `${sign} ${number(limit)}`) + MARKS[verdict]
  ).trimEnd();
}

function columns(name: string, unit: string, value: string, limit: string): string {
  return `  ${name.padEnd(38)} ${value.padStart(9)} ${limit.padStart(12)} ${unit.padEnd(9)}`;
}

/** No decimals for sizes, one for times and ratios. */
function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}
