/** A file of byte code goes to devices with its engine's build, and to no other. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { programsFor } from "./programs.ts";

const BUILD = "0123456789abcdef";
const folder = mkdtempSync(join(tmpdir(), "blindrelay-programs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const CODE = Buffer.concat([Buffer.from("brbc"), Buffer.from(BUILD, "hex"), Buffer.of(0, 255)]);
const code = programsFor(file("pump.bin", CODE), "1.0.0", undefined);
const text = programsFor(file("pump.js", "export default () => {};"), null, undefined);

it("is sent as it is to a device with this build", async () => {
  expect(await code.ofRuntime("xs", BUILD)).toMatchObject({ bytes: CODE, version: "1.0.0" });
  expect(await code.ofRuntime("xs")).toBeNull();
});

it.each([
  [
    "another build",
    () => code.ofRuntime("xs", "fedcba9876543210"),
    `is byte code of build ${BUILD}`,
  ],
  ["one that takes text", () => code.ofRuntime("node 26.1.0"), "node takes the program's text"],
  ["a board that does", () => code.ofRuntime("espruino 2v29 PICO"), "espruino takes"],
])("is not sent to %s", async (_what, push, reason) => {
  await expect(push()).rejects.toMatchObject({
    kind: "usage",
    message: expect.stringContaining(reason),
  });
});

it("is what text is not: the device's build is named", async () => {
  await expect(text.ofRuntime("xs", BUILD)).rejects.toThrow(
    `is text, and the device takes byte code of build ${BUILD}`,
  );
});
