/** `attach --record` where the disk is full. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { openRecord } from "./record.ts";

const disk = vi.hoisted(() => ({ isFull: false }));
vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const writeSync = (file: number, text: string): number => {
    if (disk.isFull) throw new Error("ENOSPC: no space left on device, write");
    return fs.writeSync(file, text);
  };
  return { ...fs, writeSync };
});

it("ends the record where the disk is full, says so once, and leaves the port alone", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-record-"));
  onTestFinished(() => {
    disk.isFull = false;
    rmSync(folder, { recursive: true });
  });
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const path = join(folder, "port.jsonl");
  const record = openRecord(path, "pump-7", null);
  record.bytes("device", Uint8Array.of(1));
  disk.isFull = true;
  for (let n = 0; n < 3; n++) record.bytes("device", Uint8Array.of(2));
  disk.isFull = false;
  record.note("away");
  record.close();
  expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(2);
  expect(said.mock.calls).toEqual([[expect.stringMatching(/port\.jsonl ends here: ENOSPC/)]]);
  disk.isFull = true;
  expect(() => openRecord(join(folder, "none"), "pump-7", null)).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining("ENOSPC") }),
  );
});
