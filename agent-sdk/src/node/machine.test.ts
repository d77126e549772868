import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { machineNumber } from "./machine.ts";

it("is the machine's own number, and null where there is none", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-machine-"));
  const file = join(folder, "machine-id");
  try {
    expect(machineNumber(file)).toBe(null);
    for (const text of ["", "uninitialized\n", "x".repeat(32)]) {
      writeFileSync(file, text);
      expect(machineNumber(file)).toBe(null);
    }
    const number = "0123456789abcdef0123456789abcdef";
    writeFileSync(file, `${number}\n`);
    expect(machineNumber(file)).toBe(number);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
