/** A machine whose clock is not the database's. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { systemClocks } from "../clock.ts";
import { initStore } from "../control/data-dir.ts";
import { checkRelay } from "../ops/check.ts";
import { startServer } from "../server.ts";
import { postgres } from "./testing/engines.ts";

const shared = postgres();

test.skipIf(shared.skipped)("a node whose clock differs from PostgreSQL's says so", async () => {
  const location = await shared.prepare();
  const store = location.engine === "postgres" ? location.url : "";
  const data = mkdtempSync(join(tmpdir(), "blindrelay-clock-"));
  await initStore({ data, store, username: "ada", password: "correct horse", totp: false });
  for (const [aheadMs, isSaid] of [
    [0, false],
    [600_000, true],
    [-7000, true],
    [3000, false],
  ] as const) {
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
    const clocks = systemClocks(() => Date.now() + aheadMs);
    const settings = { data, store, port: 0, metricsPort: 0 };
    const server = await startServer(settings, { log, clocks });
    const metrics = async () => (await fetch(server.metricsUrl)).text();
    const ahead = async () =>
      Number(/^blindrelay_clock_ahead_seconds (\S+)$/m.exec(await metrics())?.[1]);
    await expect.poll(async () => Math.abs((await ahead()) - aheadMs / 1000)).toBeLessThan(2);
    expect(lines.join("").includes("clock is not the database's")).toBe(isSaid);
    await server.stop();
    const findings = await checkRelay({ data, store }, undefined, Date.now() + aheadMs);
    expect(findings.find(({ what }) => what === "clock")?.ok).toBe(!isSaid);
  }
  rmSync(data, { recursive: true });
  await shared.remove();
});
