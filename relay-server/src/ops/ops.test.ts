/** backup, check, users and `--print-config`, as used by the owner of the data folder. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { initStore, openData, storePath } from "../control/data-dir.ts";
import { masterKeyPath } from "../control/master-key.ts";
import { startServer } from "../server.ts";
import { backupStore } from "./backup.ts";
import { checkRelay } from "./check.ts";

const MAIN = join(import.meta.dirname, "../main.ts");
const PASSWORD = "correct horse";

let folder: string;
let data: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-ops-"));
  data = join(folder, "relay");
  await initStore({ data, username: "ada", password: PASSWORD, totp: false });
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = async (args: string[], input = "", environment: Record<string, string> = {}) => {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH ?? "", BLINDRELAY_DATA: data, ...environment },
  });
  child.stdin.on("error", () => undefined).end(input);
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  return { out, err, code };
};

describe("backup", () => {
  test("of a running relay is a complete store without the key, and a relay starts with it", async () => {
    const server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
    const login = async (url: string) =>
      fetch(`${url}/api/v1/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username: "ada", password: PASSWORD }),
      });
    const before = await (await login(server.url)).json();
    const made = await run(["backup", "--to", join(folder, "copy.sqlite"), "--json"]);
    expect([made.code, made.err]).toEqual([0, ""]);
    const { file, bytes } = JSON.parse(made.out);
    expect(statSync(file)).toMatchObject({ size: bytes });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).sort()).toEqual(["copy.sqlite", "relay"]);
    const key = readFileSync(join(data, "key", "master.key"));
    expect(readFileSync(file).includes(key)).toBe(false);
    await server.stop();

    const restored = join(folder, "restored");
    mkdirSync(join(restored, "store"), { recursive: true });
    renameSync(join(data, "key"), join(restored, "key"));
    renameSync(file, storePath(restored));
    const again = await startServer({
      data: restored,
      port: 0,
      metricsPort: 0,
      logLevel: "silent",
    });
    const after = await (await login(again.url)).json();
    expect(after.user).toEqual(before.user);
    await again.stop();
  });

  test("never overwrites a file, and leaves no partial one behind", () => {
    const to = join(folder, "copy.sqlite");
    writeFileSync(to, "mine");
    const again = () => backupStore(data, undefined, to);
    expect(again).toThrow(/exists: name a new file/);
    expect(again).toThrow(expect.objectContaining({ exitCode: 2 })); // as for release keygen
    expect(readFileSync(to, "utf8")).toBe("mine");
    expect(() => backupStore(data, undefined, join(folder, "no", "folder"))).toThrow(
      /cannot write/,
    );
    expect(() => backupStore(join(folder, "x"), undefined, to)).toThrow(/no store at/);
    expect(() => backupStore(data, "postgres://x", to)).toThrow(/pg_dump/);
  });

  test("touches nothing of another one to the same file that is under way", () => {
    const theirs = [".copy.sqlite.part", ".copy.sqlite.part-theirs"];
    for (const name of theirs) writeFileSync(join(folder, name), "half of it");
    backupStore(data, undefined, join(folder, "copy.sqlite"));
    expect(readdirSync(folder).sort()).toEqual([...theirs, "copy.sqlite", "relay"]);
  });

  test("removes what one to the same file has left that was killed more than a day ago", () => {
    const left = (name: string, hours: number): void => {
      const path = join(folder, name);
      mkdirSync(path);
      writeFileSync(join(path, "copy.sqlite"), "half of it");
      const at = Date.now() / 1000 - hours * 3600;
      for (const each of [join(path, "copy.sqlite"), path]) utimesSync(each, at, at);
    };
    left(".copy.sqlite.part-killed", 25);
    left(".copy.sqlite.part-slow01", 23);
    left(".other.sqlite.part-killed", 25);
    backupStore(data, undefined, join(folder, "copy.sqlite"));
    const kept = [".copy.sqlite.part-slow01", ".other.sqlite.part-killed"];
    expect(readdirSync(folder).sort()).toEqual([...kept, "copy.sqlite", "relay"]);
  });

  test("of a damaged store is refused", () => {
    damage();
    const to = join(folder, "copy.sqlite");
    expect(() => backupStore(data, undefined, to)).toThrow();
    expect(existsSync(to)).toBe(false);
  });
});

/** Overwrites pages in the middle of the store. */
const damage = () => {
  const path = storePath(data);
  const database = new DatabaseSync(path);
  database.exec("pragma wal_checkpoint(truncate); pragma journal_mode = delete");
  database.close();
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 4096 * 3, Math.min(bytes.length, 4096 * 12));
  writeFileSync(path, bytes);
};

describe("check", () => {
  const check = (more: object = {}, masterKey?: string) =>
    checkRelay({ data, store: "sqlite", ...more }, masterKey, Date.now());
  const failing = async (...args: Parameters<typeof check>) =>
    (await check(...args)).filter(({ ok }) => !ok);

  test("of a sound relay finds nothing, and exits with 0", async () => {
    const sound = await run(["check", "--json"]);
    const { ok, findings } = JSON.parse(sound.out);
    expect([sound.code, ok]).toEqual([0, true]);
    expect(findings.map((finding: { what: string }) => finding.what)).toEqual([
      "integrity",
      "schema",
      "master key",
      "permissions",
      "free space",
    ]);
  });

  test("of a restored backup does not change a byte of it", async () => {
    const copy = join(folder, "copy.sqlite");
    backupStore(data, undefined, copy);
    renameSync(copy, storePath(data));
    const before = readFileSync(storePath(data));
    expect(await checkRelay({ data, store: "sqlite" }, undefined, Date.now())).not.toContainEqual(
      expect.objectContaining({ ok: false }),
    );
    expect(readFileSync(storePath(data)).equals(before)).toBe(true);
  });

  test("each problem has a fix, and makes the exit code 1", async () => {
    chmodSync(storePath(data), 0o644);
    const open = await run(["check"]);
    expect(open.code).toBe(1);
    expect(open.out).toContain(`FAILED permissions: others may enter or read ${storePath(data)}`);
    expect(open.out).toContain(`chmod go= ${storePath(data)}`);
  });

  test("a group that may enter is told, and is no problem", async () => {
    for (const path of [storePath(data), masterKeyPath(data)]) chmodSync(path, 0o660);
    const { code, out } = await run(["check"]);
    expect([code, out]).toEqual([0, expect.stringContaining("a group may enter")]);
  });

  test("a damaged store", async () => {
    damage();
    const [finding] = await failing();
    expect(finding?.what).toMatch(/integrity|store/);
    expect(finding?.fix).toContain("with its -wal and -shm away, and restore the newest backup");
  });

  test("a store of a newer version", async () => {
    const { store } = await openData({ data });
    await store.db
      .withTables<{ migrations: { name: string } }>()
      .insertInto("migrations")
      .values({ name: "9999-later" })
      .execute();
    await store.close();
    expect(await failing()).toMatchObject([
      { what: "schema", detail: "has 9999-later", fix: "run a newer blindrelay-server" },
    ]);
  });

  test.each([
    ["another key", "ab".repeat(32), "not the one that the store was made with"],
    ["no key at all", "nonsense", "64 hexadecimal digits"],
  ])("%s", async (_what, key, detail) => {
    expect(await failing({}, key)).toMatchObject([
      { what: "master key", detail: expect.stringContaining(detail) },
    ]);
  });

  test("a missing key file, a missing store", async () => {
    rmSync(join(data, "key"), { recursive: true });
    expect(await failing()).toMatchObject([{ what: "master key" }]);
    rmSync(join(data, "store"), { recursive: true });
    expect(await failing()).toMatchObject([{ what: "store", detail: `there is none in ${data}` }]);
    const findings = await checkRelay({ data, store: "sqlite" }, undefined, Date.now());
    expect(findings.map(({ what }) => what)).toEqual(["store", "free space"]); // no permissions
  });

  // anomalyco/opencode#14970, David-Crty/databasement#344
  test("a store on the disk of another machine, which `start` logs too", async () => {
    // What statfs(2) reports: tests cannot mount one.
    const preload = `
      import fs from "node:fs";
      import { syncBuiltinESMExports } from "node:module";
      const { statfsSync } = fs;
      fs.statfsSync = (path) => ({ ...statfsSync(path), type: 0x6969 });
      syncBuiltinESMExports();`;
    const environment = {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
    };
    const { code, out } = await run(["check"], "", environment);
    expect([code, out]).toEqual([1, expect.stringContaining("is on NFS")]);
    // Not an address of this machine, so that it ends.
    const started = await run(["start", "--host", "192.0.2.1"], "", environment);
    expect(started.err).toContain("is on NFS");
  });

  test("a certificate that cannot be read", async () => {
    expect(await failing({ tlsCert: join(folder, "nothing") })).toMatchObject([
      { what: "certificate" },
    ]);
  });
});

describe("user", () => {
  test("add creates a user who can log in, and list shows all users", async () => {
    const added = await run(
      ["user", "add", "grace", "--password-stdin", "--json"],
      "hopper 1906\n",
    );
    expect([added.code, added.err]).toEqual([0, ""]);
    expect(JSON.parse(added.out)).toMatchObject({ username: "grace", role: "user" });
    const listed = JSON.parse((await run(["user", "list", "--json"])).out);
    expect(listed.users).toMatchObject([
      { username: "ada", role: "admin", totp_enabled: false },
      { username: "grace", role: "user", totp_enabled: false },
    ]);
    const server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
    const login = await fetch(`${server.url}/api/v1/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "grace", password: "hopper 1906" }),
    });
    expect(login.status).toBe(200);
    await server.stop();
  });

  test.each([
    ["a name that is taken", ["ada", "--password-stdin"], PASSWORD, 5, "there is a user ada"],
    ["a password that will not do", ["bob", "--password-stdin"], "short", 2, "8 to 256"],
    ["no password", ["bob"], "", 2, "--password-stdin"],
  ])("%s is refused with its reason", async (_what, args, input, code, named) => {
    const refused = await run(["user", "add", ...args], input);
    expect([refused.code, refused.out]).toEqual([code, ""]);
    expect(refused.err).toContain(named);
  });
});

test("passwords and second factors are reset, and names unlocked, by command", async () => {
  const reset = await run(["user", "reset-password", "ada", "--password-stdin"], "another one\n");
  expect([reset.code, reset.err]).toEqual([0, ""]);
  const [totp, unlocked] = await Promise.all([
    run(["user", "reset-totp", "ada"]),
    run(["unlock", "ada", "--json"]),
  ]);
  expect(totp.out).toContain("Removed the second factor of ada");
  expect(JSON.parse(unlocked.out)).toEqual({ address: null, username: "ada" });
  const [name, address] = await Promise.all([run(["unlock", "ada"]), run(["unlock", "192.0.2.7"])]);
  expect(name.out).toBe(
    "Unlocked the user name ada and its second factor. An address that is locked out stays so: unlock ADDRESS. A running relay applies this within a second.\n",
  );
  expect(address.out).toBe(
    "Unlocked the address 192.0.2.7. A running relay applies this within a second.\n",
  );
});

test("--print-config shows the combination of file, environment and flags, without passwords", async () => {
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ publicUrl: "https://relay.example", port: 1 }));
  const printed = await run(["start", "--print-config", "--config", file, "--port", "2"], "", {
    BLINDRELAY_STORE: "postgres://relay:hunter22@db.example/relay?sslpassword=hunter33",
    BLINDRELAY_METRICS_PORT: "3",
  });
  expect([printed.code, printed.err]).toEqual([0, ""]);
  expect(JSON.parse(printed.out)).toMatchObject({
    data,
    publicUrl: "https://relay.example",
    port: 2,
    metricsPort: 3,
    store: "postgres://relay:***@db.example/relay?sslpassword=***",
  });
  expect(printed.out).not.toContain("hunter");
  expect((await run(["start", "--print-config", "--port", "x"])).code).toBe(2);
});
