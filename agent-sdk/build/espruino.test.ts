/**
 * The files for Espruino: the same at every build, in the dialect, and guarded where built-ins are
 * lenient.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { espruinoFile } from "../src/testing/budgets.ts";
import { checkDialect } from "./dialect.ts";
import { buildEspruino, buildEspruinoSerial, GUARDED } from "./espruino.ts";

describe.each([
  ["over WebSockets", buildEspruino],
  ["over a UART", buildEspruinoSerial],
])("the file %s", (_what, build) => {
  const { code, modules } = build();
  const naming = (word: RegExp): string[] =>
    modules
      .filter((path) =>
        word.test(readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "")),
      )
      .map((path) => path.split("/").at(-1) as string);

  it("is the same at every build", () => {
    expect(build().code).toBe(code);
  });

  it("stays within what Espruino runs", () => {
    expect(checkDialect(code, GUARDED)).toEqual([]);
  });

  it("stays within its bytes", () => {
    expect(espruinoFile(code.length).verdict).toBe("ok");
  });

  it("decodes leniently in one place only, where the result is compared", () => {
    expect(naming(/\batob\(/)).toEqual(["natives.ts"]);
    expect(naming(/JSON\.parse\(/).sort()).toEqual(["json.ts", "natives.ts", "strict-json.ts"]);
    expect(code.match(/JSON\.parse\(/g)).toHaveLength(2);
  });

  it("is ASCII, of a few lines, and exports the door", () => {
    expect(code).toMatch(/^[\n -~]*$/);
    for (const name of ["start", "stop", "status", "provision"])
      expect(code).toContain(`exports.${name}=`);
  });

  it("holds no member's long name", () => {
    expect(code).not.toMatch(/\.(receiveUnheld|epochSecret|linkOpened)\b/);
  });
});
