/**
 * Commands and starts whose data folder cannot be used: a command died in it, the key is no file,
 * the disk is full, read-only, or knows no hard links. Each says the cause and the fix, and none
 * calls it a bug, or replaces a store that is whole.
 */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { initStore, storePath } from "../control/data-dir.ts";

const MAIN = join(import.meta.dirname, "../main.ts");
const PASSWORD = "correct horse";
const INIT = ["init", "--username", "ada", "--password-stdin", "--no-totp"];
const START = ["start", "--port", "0", "--metrics-port", "0"];

let folder: string;
let data: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-hostile-disk-"));
  data = join(folder, "relay");
});
afterEach(() => rmSync(folder, { recursive: true }));

const make = () => initStore({ data, username: "ada", password: PASSWORD, totp: false });

/** `before`: shell commands of root in a mount namespace of its own. */
const run = (args: readonly string[], before = "", more: Record<string, string> = {}) => {
  const env = { PATH: process.env.PATH ?? "", BLINDRELAY_DATA: data, FOLDER: folder, ...more };
  const command = [process.execPath, MAIN, ...args];
  const inside = ["-m", "sh", "-c", `${before}\n"$@"`, "sh", ...command];
  const [file = "", ...rest] = before === "" ? command : ["unshare", ...inside];
  const options = { env, input: PASSWORD, encoding: "utf8", timeout: 120_000 } as const;
  const { status: code, stdout, stderr } = spawnSync(file, rest, options);
  return { code, said: stdout + stderr };
};

/** The state of a store whose making was killed: its journal was not removed. */
const leaveHotJournal = () => {
  for (const name of ["store", "key"])
    mkdirSync(join(data, name), { recursive: true, mode: 0o700 });
  const path = join(folder, "made.sqlite");
  const database = new DatabaseSync(path);
  database.exec(`create table made (x text); insert into made values ('before');
    pragma cache_size = 1; begin immediate`);
  const insert = database.prepare("insert into made values (?)");
  for (let i = 0; i < 200; i += 1) insert.run("x".repeat(2000)); // more than the cache holds
  for (const end of ["", "-journal"]) copyFileSync(`${path}${end}`, `${storePath(data)}${end}`);
  database.close();
};

describe("a store that a command left in the middle of a change", () => {
  const files = () =>
    readdirSync(join(data, "store")).map((name) => [
      name,
      readFileSync(join(data, "store", name), "base64"),
    ]);

  test("check says that it is whole, and changes nothing", () => {
    leaveHotJournal();
    const before = files();
    expect(before).toHaveLength(2);
    const { code, said } = run(["check"]);
    expect(code).toBe(1);
    expect(said).toContain("FAILED store: whole, but a command or a relay died while it wrote");
    expect(said).not.toContain("backup");
    expect(files()).toEqual(before);
  });

  test("init completes it", () => {
    leaveHotJournal();
    expect(run(INIT)).toMatchObject({ code: 0 });
    expect(run(["check"])).toMatchObject({ code: 0 });
  });

  test("start says that init is missing, and check afterwards too", () => {
    leaveHotJournal();
    const started = run(START);
    expect(started).toMatchObject({
      code: 4,
      said: expect.stringContaining("run blindrelay-server init"),
    });
    const { code, said } = run(["check"]);
    expect(code).toBe(1);
    expect(said).toMatch(
      /store: init began to make it and did not end; run blindrelay-server init/,
    );
    expect(run(INIT)).toMatchObject({ code: 0 });
  });
});

describe("a master key that is no key", () => {
  test.each([
    ["a folder", (path: string) => mkdirSync(path), 4, "EISDIR"],
    ["empty", (path: string) => writeFileSync(path, ""), 5, "has 0 bytes instead of 32"],
  ] as const)("%s", async (_what, put, exitCode, named) => {
    await make();
    const path = join(data, "key", "master.key");
    rmSync(path);
    put(path);
    for (const args of [START, ["rekey"]]) {
      const { code, said } = run(args);
      expect([args, code]).toEqual([args, exitCode]);
      expect(said).toContain(named);
      expect(said).toContain(path);
    }
    const checked = run(["check"]);
    expect(checked).toMatchObject({ code: 1, said: expect.stringContaining(named) });
    rmSync(join(data, "store"), { recursive: true });
    expect(run(INIT)).toMatchObject({ code: exitCode, said: expect.stringContaining(path) });
  });
});

describe("a store that is no file", () => {
  test.each([
    ["a folder", (path: string) => mkdirSync(path), "mount the folder that it is in"],
    ["a pipe", (path: string) => spawnSync("mkfifo", [path]), "is a pipe"],
  ] as const)(
    "%s is told by each command, and none waits or calls it damaged",
    async (_what, put, named) => {
      await make();
      const path = storePath(data);
      for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
      put(path);
      const backup = ["backup", "--to", join(folder, "backup.sqlite")];
      for (const args of [START, INIT, ["user", "list"], ["rekey"], backup, ["check"]]) {
        const { code, said } = run(args);
        expect([args, code]).toEqual([args, args[0] === "check" ? 1 : 4]);
        expect(said).toContain(`${path} is a`);
        expect(said).toContain(named);
        expect(said).not.toMatch(/damaged|cannot write|restore|disk I\/O/);
      }
    },
  );
});

/** Mounts of its own need root, and a kernel that has namespaces. */
const CAN_MOUNT = spawnSync("unshare", ["-m", "true"]).status === 0;

const tmpfs = (options: string) =>
  `mkdir -p "$BLINDRELAY_DATA" "$FOLDER/was"; cp -a "$BLINDRELAY_DATA/." "$FOLDER/was"
  mount -t tmpfs -o mode=700,${options} tmpfs "$BLINDRELAY_DATA"
  cp -a "$FOLDER/was/." "$BLINDRELAY_DATA"`;
/** Shell commands that make the data folder's disk what the name says, and what is said of it. */
const DISKS: readonly (readonly [string, string, RegExp])[] = [
  [
    "full",
    `${tmpfs("size=2m")}; cat /dev/zero > "$BLINDRELAY_DATA/ballast" 2> /dev/null`,
    /the disk of \S+ is full|make room/,
  ],
  [
    "without an inode",
    `${tmpfs("size=8m,nr_inodes=32")}
    i=0; while true 2> /dev/null > "$BLINDRELAY_DATA/$i"; do i=$((i+1)); done`,
    /has no inode left|remove files/,
  ],
  [
    "read-only",
    `${tmpfs("size=8m")}; mount -o remount,ro "$BLINDRELAY_DATA"`,
    /read-only|mount it for writing/,
  ],
];

describe.skipIf(!CAN_MOUNT)("a disk (needs root and unshare)", () => {
  test.each(DISKS)("%s: init says so", (_name, disk, named) => {
    const { code, said } = run(INIT, disk);
    expect(code).toBe(4);
    expect(said).toMatch(named);
    expect(said).not.toContain("a bug");
  });

  test.each(DISKS)(
    "%s: what uses a store says so, and calls for no backup",
    async (_n, disk, named) => {
      await make();
      const commands = [
        [START, 4],
        [["check"], 1],
        [["backup", "--to", join(data, "copy")], 4],
      ] as const;
      for (const [args, exitCode] of commands) {
        const { code, said } = run(args, disk);
        expect([args, code]).toEqual([args, exitCode]);
        expect(said).toMatch(named);
        expect(said).not.toMatch(/a bug|restore|integrity/);
      }
    },
  );
});
