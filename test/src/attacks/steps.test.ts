/**
 * An `init` and a migration that are killed at each of their steps: the next start finds it whole.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { findUserByName, openData } from "@blindrelay/relay-server/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

const SERVER = join(import.meta.dirname, "../../../relay-server");
const MAIN = join(SERVER, "src/main.ts");
const HOOK = pathToFileURL(join(import.meta.dirname, "killed-at.mjs"));
const INIT = ["init", "--username", "ada", "--no-totp", "--password-stdin"];
/** A process each: not all of them, but from every part. */
const EVERY = 9;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-steps-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Whether it was killed before it ended. */
const isKilled = (
  data: string,
  at: number,
  [command = "", ...args]: readonly string[],
  env = {},
) => {
  const node = ["--import", String(HOOK), MAIN, command, "--data", data, ...args];
  const { signal, stderr } = spawnSync(process.execPath, node, {
    input: "correct horse battery",
    env: { ...process.env, ...env, KILLED_AT: String(at) },
    timeout: 60_000,
  });
  if (signal !== "SIGKILL") expect(String(stderr)).not.toMatch(/a bug in/);
  return signal === "SIGKILL";
};

test("init, killed at its steps, is repeated or was done", async () => {
  let kills = 0;
  for (let at = 1; ; at += EVERY) {
    const data = join(folder, `init${at}`);
    const wasKilled = isKilled(data, at, INIT);
    const again = spawnSync(
      process.execPath,
      [MAIN, INIT[0] as string, "--data", data, ...INIT.slice(1)],
      { input: "correct horse battery" },
    );
    expect([
      at,
      again.status === 0 || /there is a store already/.test(String(again.stderr)),
      String(again.stderr),
    ]).toEqual([at, true, String(again.stderr)]);
    const { store } = await openData({ data });
    expect((await findUserByName(store.db, "ada"))?.role).toBe("admin");
    await store.close();
    if (!wasKilled) break;
    kills += 1;
  }
  expect(kills).toBeGreaterThan(2);
});

test("a migration of an earlier store, killed at its steps, is whole at the next start", async () => {
  const fixture = (name: string) => readFileSync(join(SERVER, "fixtures/03d9d31", name));
  const { masterKey } = JSON.parse(String(fixture("fixture.json"))) as { masterKey: string };
  const bytes = gunzipSync(fixture("store.sqlite.gz"));
  let kills = 0;
  for (let at = 1; ; at += EVERY) {
    const data = join(folder, `migration${at}`);
    mkdirSync(join(data, "store"), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, "store", "relay.sqlite"), bytes);
    const env = { BLINDRELAY_MASTER_KEY: masterKey };
    const wasKilled = isKilled(data, at, ["unlock", "192.0.2.1"], env);
    const { store } = await openData({ data, masterKey });
    const agents = await store.db.selectFrom("agents").select("agent_id").execute();
    expect(agents.length).toBeGreaterThan(0);
    await store.close();
    if (!wasKilled) break;
    kills += 1;
  }
  expect(kills).toBeGreaterThan(2);
});
