import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { writeFinding } from "../../search/findings.ts";

const TIMEOUT_MS = 600_000;
const file = (name: string): string => join(import.meta.dirname, name);

const inFolder = async (does: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  try {
    await does(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test(
  "the search finds a planted bug, as a scenario that run breaks with",
  { timeout: TIMEOUT_MS },
  () =>
    inFolder(async (folder) => {
      const env = {
        ...process.env,
        BLINDRELAY_TEST_RECORDS: undefined,
        PLANTED: "offline never announced",
      };
      const node = (...args: string[]) =>
        promisify(execFile)(process.execPath, ["--import", file("preload.ts"), ...args], {
          env,
        });
      const { stdout } = await node(file("seek.ts"), "1", "--small");
      const finding = JSON.parse(stdout);
      expect(finding.oracle).toBe("told");
      const written = await writeFinding(folder, finding, ".");
      const run = node(file("../../bin.ts"), "run", written, "--json", "--no-shrink");
      const { code, stdout: out } = await run.then(
        () => ({ code: 0, stdout: "" }),
        (error) => error,
      );
      expect(code).toBe(1);
      expect(JSON.parse(out)).toMatchObject({ ok: false, seed: finding.seed, crypto: "real" });
    }),
);
