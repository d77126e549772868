/**
 * The files for Espruino are reproducible, within the dialect, and guarded where built-ins are
 * lenient.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  espruinoFile,
  espruinoParts,
  espruinoPush,
  espruinoRekey,
  espruinoWhole,
  espruinoWifi,
} from "../src/testing/budgets.ts";
import { unexecutedArrows } from "./arrows.ts";
import { checkDialect } from "./built-file-dialect.ts";
import { bundle } from "./bundle.ts";
import {
  buildEspruino,
  buildEspruinoSerial,
  buildEspruinoWifi,
  buildForBoard,
  buildWith,
  GUARDED,
  VARIANTS,
} from "./espruino.ts";

const FILES = VARIANTS.flatMap((variant) => [
  { variant, over: "WebSockets", build: () => buildEspruino(variant) },
  { variant, over: "a UART", build: () => buildEspruinoSerial(variant) },
]);

const REST_BYTES = 600;
/** An Espruino's stack trace names a stored function by its text: a variable per nine bytes. */
const LONGEST_FUNCTION = 2200;

it("is the same at every build", () => {
  const anew = buildWith("socket", bundle);
  const made = anew("2");
  expect(anew("2")).toEqual(made);
  expect(buildEspruino("2")).toEqual(made);
});

it.each(VARIANTS)("has the limit that docs/espruino.md states: %s", (variant) => {
  const page = readFileSync(new URL("../../docs/espruino.md", import.meta.url), "utf8");
  const { limit } = espruinoFile(variant, 0);
  expect(page).toContain(`| \`…-${variant}.bin\` | ${limit.toLocaleString("en")} |`);
});

it("keeps each of its parts within its limit", () => {
  const beyond = espruinoParts(buildEspruino("2", true).parts).filter(
    ({ verdict }) => verdict !== "ok",
  );
  expect(beyond).toEqual([]);
});

/** The file without push, and the file with it. */
const PUSHES = [
  { variant: "2", over: "WebSockets", build: buildEspruino },
  { variant: "any", over: "a UART", build: buildEspruinoSerial },
] as const;

describe.each(PUSHES)("with push, $variant over $over", ({ variant, over, build }) => {
  const lean = build(variant);
  const whole = build(variant, true);

  it("stays within what Espruino runs, and within its bytes", () => {
    expect(checkDialect(whole.code, [...GUARDED, ...whole.late])).toEqual([]);
    expect(unexecutedArrows(whole.code)).toEqual([]);
    const added = whole.stored.length - lean.stored.length;
    expect(espruinoPush(variant, added, over)).toMatchObject({ verdict: "ok" });
  });

  it("is in no file that was built without it", () => {
    expect(whole.code).toContain("system.push");
    expect(lean.code).not.toContain("push.");
    expect(lean.modules.filter((path) => /\/(push|boot-board)\.ts$/.test(path))).toEqual([]);
  });
});

describe.each([false, true])("with Wi-Fi, push: %s", (push) => {
  const lean = buildEspruino("2", push);
  const whole = buildEspruinoWifi("2", push);

  it("stays within what Espruino runs, and within its bytes", () => {
    expect(checkDialect(whole.code, [...GUARDED, ...whole.late])).toEqual([]);
    expect(unexecutedArrows(whole.code)).toEqual([]);
    const added = whole.stored.length - lean.stored.length;
    expect(espruinoWifi("2", added)).toMatchObject({ verdict: "ok" });
  });

  it("is in no file that was built without it", () => {
    for (const name of ["useNetwork", "sleepWhenIdle"])
      expect(whole.code).toContain(`exports.${name}=`);
    expect(whole.code).toContain("Wi-Fi");
    expect(lean.code).not.toContain("Wi-Fi");
    expect(
      lean.modules.filter((path) => /\/(network|wifi|wifi-problem|wake|sleep)\.ts$/.test(path)),
    ).toEqual([]);
  });
});

describe.each(PUSHES)("with rekey, $variant over $over", ({ variant, build }) => {
  const lean = build(variant, true);
  const whole = build(variant, true, true);

  it("stays within what Espruino runs, and within its bytes", () => {
    expect(checkDialect(whole.code, [...GUARDED, ...whole.late])).toEqual([]);
    expect(unexecutedArrows(whole.code)).toEqual([]);
    const added = whole.stored.length - lean.stored.length;
    expect(espruinoRekey(variant, added)).toMatchObject({ verdict: "ok" });
  });

  it("is in no file that was built without it", () => {
    expect(whole.code).toContain("system.rekey");
    expect(lean.code).not.toContain("rekey");
    expect(lean.modules.filter((path) => /rekey|secret-trial/.test(path))).toEqual([]);
  });
});

it("stays within its bytes with pushes and a Wi-Fi", () => {
  const { stored } = buildEspruinoWifi("2", true);
  expect(espruinoWhole(stored.length)).toMatchObject({ verdict: "ok" });
});

describe.each(FILES)("the file for $variant over $over", ({ variant, over, build }) => {
  const { code, stored, parts, modules, late } = build();
  const naming = (word: RegExp): string[] =>
    modules
      .filter((path) =>
        word.test(readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "")),
      )
      .map((path) => path.split("/").at(-1) as string);

  it("stays within what Espruino runs", () => {
    expect(checkDialect(code, [...GUARDED, ...late])).toEqual([]);
  });

  it("has no arrow with this that makes a debug build of Espruino fail", () => {
    expect(unexecutedArrows(code)).toEqual([]);
  });

  it("stays within its bytes", () => {
    expect(espruinoFile(variant, stored.length, over)).toMatchObject({ verdict: "ok" });
  });

  it("decodes leniently in only one place, where the result is compared", () => {
    expect(naming(/\batob\(/)).toEqual(["natives.ts"]);
    expect(naming(/JSON\.parse\(/).sort()).toEqual(["json.ts", "natives.ts", "strict-json.ts"]);
    // One of them asks which strings the engine has.
    expect(code.match(/JSON\.parse\(/g)).toHaveLength(3);
  });

  it("is ASCII, in few lines, and exports the public API", () => {
    expect(code).toMatch(/^[\n -~]*$/);
    for (const name of ["start", "stop", "status", "provision"])
      expect(code).toContain(`exports.${name}=`);
  });

  it("has an error copy at most its longest function, not the rest of the file", () => {
    const lengths = [...stored.matchAll(/_s\.substr\(o(?:,(\d+))?\)/g)].map(([, n]) => Number(n));
    expect(lengths.length).toBeGreaterThan(3);
    for (const length of lengths) expect(length).toBeLessThan(LONGEST_FUNCTION);
  });

  it("reports the size of each part", () => {
    const sum = parts.reduce((bytes, part) => bytes + part.bytes, 0);
    // Beside them there are the makers of stored functions, the exports and the block around all.
    const rest = stored.length - sum;
    expect(rest).toBeGreaterThan(0);
    expect(rest).toBeLessThan(REST_BYTES);
  });

  it("contains only the ciphers of its packet version", () => {
    const own = {
      "1": ["chacha20poly1305"],
      "2": ["ccm"],
      any: ["ccm", "chacha20poly1305", "sha256"],
    };
    const all = modules.map((path) => path.replace(/^.*\/|\.ts$/g, ""));
    expect(all.filter((name) => own.any.includes(name)).sort()).toEqual(own[variant]);
  });

  it("contains no long name of a private member", () => {
    expect(code).not.toMatch(/\.(receiveUnheld|epochSecret|linkOpened)\b/);
  });
});

// Where no real Espruino is, nothing else would notice that one cannot read them.
it.each(["hour", "links", "numbers", "vectors"])(
  "a real Espruino can read the tests that it runs: %s",
  (name) => {
    const { code } = buildForBoard(
      fileURLToPath(new URL(`../src/testing/espruino-${name}.ts`, import.meta.url)),
    );
    expect(checkDialect(code).filter(({ rule }) => rule.startsWith("syntax"))).toEqual([]);
  },
);
