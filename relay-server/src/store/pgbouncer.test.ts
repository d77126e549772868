/**
 * The store behind PgBouncer, in both of its modes that keep transactions whole. It refuses
 * parameters of a connection that it does not know, which is no outage.
 *
 * goauthentik/authentik#19939, pgbouncer/pgbouncer#875
 */
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answers, freePort } from "@blindrelay/protocol/testing/free-port";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore } from "./open.ts";
import { postgres } from "./testing/engines.ts";
import { unavailability } from "./unavailable.ts";
import { addUser, findUserByName } from "./users.ts";

const ADDRESS = process.env.BLINDRELAY_TEST_POSTGRES ?? "postgres://postgres@127.0.0.1:5432/test";
const PROGRAM = spawnSync("sh", ["-c", "PATH=$PATH:/usr/sbin command -v pgbouncer"], {
  encoding: "utf8",
}).stdout.trim();
/** It refuses to run as root. */
const ACCOUNT = process.getuid?.() === 0 ? ["-u", "postgres"] : [];

describe.skipIf(PROGRAM === "" || postgres().skipped)("PgBouncer (needs pgbouncer)", () => {
  const database = `pooled_${randomUUID().replaceAll("-", "")}`;
  const admin = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: ADDRESS });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  beforeAll(() => admin(`create database ${database}`));
  afterAll(() => admin(`drop database ${database} with (force)`));

  /** The address of a PgBouncer of the test's own. */
  const bounce = async (mode: string, more: string): Promise<string> => {
    const { hostname, port, username, password } = new URL(ADDRESS);
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-pgbouncer-"));
    const ownPort = await freePort();
    const login = `user=${username}${password === "" ? "" : ` password=${password}`}`;
    writeFileSync(
      join(folder, "pgbouncer.ini"),
      `[databases]
${database} = host=${hostname} port=${port || 5432} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 5
${more}
`,
    );
    chmodSync(folder, 0o755);
    const child = spawn(PROGRAM, [...ACCOUNT, join(folder, "pgbouncer.ini")], { stdio: "ignore" });
    onTestFinished(async () => {
      if (child.exitCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      rmSync(folder, { recursive: true });
    });
    await vi.waitUntil(() => answers(ownPort), { timeout: 30_000, interval: 20 });
    return `postgres://${username}@127.0.0.1:${ownPort}/${database}`;
  };
  const ignored =
    "ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout";

  it.each(["session", "transaction"])("works in mode %s", async (mode) => {
    const url = await bounce(mode, ignored);
    const store = await openStore({ engine: "postgres", url }, true);
    onTestFinished(() => store.close());
    const names = Array.from({ length: 40 }, (_, index) => `${mode}${index}`);
    // More at once than connections: each transaction has one for itself.
    await Promise.all(
      names.map((username) =>
        store.write(async (tx) => {
          const row = { id: randomUUID(), username, role: "user" as const, password_hash: "x" };
          await addUser(tx, { ...row, created_at: 1, totp_secret: null, totp_confirmed: 0 });
          expect((await findUserByName(tx, username))?.id).toBe(row.id);
        }),
      ),
    );
    const failing = store.write(async (tx) => {
      const row = { id: randomUUID(), username: "half", role: "user" as const, password_hash: "x" };
      await addUser(tx, { ...row, created_at: 1, totp_secret: null, totp_confirmed: 0 });
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await findUserByName(store.db, "half")).toBeUndefined();
    for (const username of names) {
      expect((await findUserByName(store.db, username))?.username).toBe(username);
    }
  });

  it("says what PgBouncer must be told, which is no outage", async () => {
    const url = await bounce("transaction", "");
    const error = await openStore({ engine: "postgres", url }, true).catch((thrown) => thrown);
    expect(unavailability(error)).toBeNull();
    expect(error.message).toMatch(
      /unsupported startup parameter.*ignore_startup_parameters = statement_timeout/,
    );
  });
});
