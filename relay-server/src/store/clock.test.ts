/** A machine whose clock is not the database's. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateSync } from "otplib";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClocks } from "../base/clock.ts";
import { initStore } from "../control/data-dir.ts";
import { checkRelay } from "../ops/check.ts";
import { startServer } from "../server.ts";
import { callRest } from "../testing/peer.ts";
import { databaseClock } from "./clock.ts";
import { openStore } from "./open.ts";
import { postgres } from "./testing/engines.ts";

const shared = postgres();
const PASSWORD = "correct horse";
const HOUR_MS = 3_600_000;
let data: string;
let store: string;
let secret: string;

beforeAll(async () => {
  if (shared.skipped) return;
  data = mkdtempSync(join(tmpdir(), "blindrelay-clock-"));
  const location = await shared.prepare();
  store = location.engine === "postgres" ? location.url : "";
  const made = await initStore({ data, store, username: "ada", password: PASSWORD, totp: true });
  secret = made.totpSecret as string;
});

afterAll(async () => {
  if (shared.skipped) return;
  rmSync(data, { recursive: true });
  await shared.remove();
});

const startAhead = async (aheadMs: number) => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  const clocks = systemClocks(() => Date.now() + aheadMs);
  const settings = { data, store, port: 0, metricsPort: 0 };
  return { server: await startServer(settings, { log, clocks }), lines };
};

test.skipIf(shared.skipped)("a node whose clock differs from PostgreSQL's says so", async () => {
  for (const [aheadMs, isSaid] of [
    [0, false],
    [600_000, true],
    [-7000, true],
    [3000, false],
  ] as const) {
    const { server, lines } = await startAhead(aheadMs);
    const metrics = await (await fetch(server.metricsUrl)).text();
    const aheadS = Number(/^blindrelay_clock_ahead_seconds (\S+)$/m.exec(metrics)?.[1]);
    expect(Math.abs(aheadS - aheadMs / 1000)).toBeLessThan(2);
    expect(lines.join("").includes("clock is not the database's")).toBe(isSaid);
    await server.stop();
    const findings = await checkRelay({ data, store }, undefined, Date.now() + aheadMs);
    expect(findings.find(({ what }) => what === "clock")?.ok).toBe(!isSaid);
  }
});

test.skipIf(shared.skipped)(
  "a node whose clock is wrong accepts right codes, and what it makes ends in time",
  async () => {
    const startedMs = Date.now();
    // A code is good once: the second login takes the next one.
    for (const [aheadMs, codeInMs] of [
      [600_000, 0],
      [-48 * HOUR_MS, 30_000],
    ] as const) {
      const { server } = await startAhead(aheadMs);
      const code = generateSync({ secret, epoch: Math.floor((startedMs + codeInMs) / 1000) });
      const login = { username: "ada", password: PASSWORD, totp_code: code };
      const post = (path: string, token: string | null, body?: object) =>
        callRest(server.url, "POST", path, token, body);
      const { status, body } = await post("/auth/login", null, login);
      expect(status).toBe(200);
      const session = (await post("/auth/session", body.user.api_token)).body;
      const leftMs = Date.parse(session.expires_at) - Date.now();
      expect(Math.abs(leftMs - 24 * HOUR_MS)).toBeLessThan(60_000);
      await server.stop();
    }
  },
);

test.skipIf(shared.skipped)("a slow answer of the database does not move the clock", async () => {
  const opened = await openStore({ engine: "postgres", url: store }, false);
  let [askedAgoMs, sleptMs] = [0, 0];
  const steadyMs = () => {
    const ms = Date.now() - sleptMs - askedAgoMs;
    askedAgoMs = 0;
    return ms;
  };
  const clock = await databaseClock(opened.db, { steadyMs, wallMs: Date.now });
  const offMs = () => Math.abs(clock.nowMs() - Date.now());
  expect(offMs()).toBeLessThan(2000);
  askedAgoMs = 20_000;
  await clock.look();
  expect(offMs()).toBeLessThan(2000);
  // Unless it cannot be true otherwise: this machine slept, or the database is another one.
  sleptMs = 60_000;
  expect(clock.isApart()).toBe(true);
  await clock.look();
  expect(clock.isApart()).toBe(false);
  await opened.close();
});
