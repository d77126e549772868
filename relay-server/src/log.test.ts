/** The log's stream, in a process of its own, as it writes to standard error. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const LINES = 5000;

/** Logs to a disk that is full, and prints how many bytes the log tried to write at most. */
const LOGGING = `
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
let most = 0;
let refusals = 0;
fs.write = (fd, bytes, done) => {
  most = Math.max(most, bytes.length);
  refusals += 1;
  for (let at = 0; at < ${LINES}; at += 1) log.info("x".repeat(100));
  if (refusals === 6) {
    fs.writeSync(1, String(most));
    process.exit();
  }
  setImmediate(done, Object.assign(new Error("full"), { code: "ENOSPC" }));
};
syncBuiltinESMExports();
const { createLog } = await import(process.argv[1]);
const log = createLog("info");
log.info("the first");
setInterval(() => undefined, 1000);
`;

test("what waits for room on a full disk is bounded, however long that takes", async () => {
  const args = ["--input-type=module", "--eval", LOGGING, join(import.meta.dirname, "log.ts")];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 24 });
  expect(Number(stdout)).toBeLessThan(LINES * 200);
});
