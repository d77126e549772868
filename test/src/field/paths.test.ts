/** Folders with characters that mean something in URLs, and a store whose newest rows lie apart. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const RELAY = join(fileURLToPath(import.meta.resolve("@blindrelay/relay-server")), "../main.ts");
const ROOT = resolve(import.meta.dirname, "../../..");

const relay = (args: readonly string[]) =>
  spawnSync(process.execPath, [RELAY, ...args], { input: "a long password", encoding: "utf8" });

/** The sources below these folders that match each of the patterns. */
const sourcesWith = (folders: readonly string[], ...patterns: readonly RegExp[]): string[] => {
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...folders];
  const files = execFileSync("git", list, { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  const sources = files.filter((file) => /\.(ts|mjs)$/.test(file) && existsSync(join(ROOT, file)));
  expect(sources.length).toBeGreaterThan(10);
  return sources.filter((file) => {
    const source = readFileSync(join(ROOT, file), "utf8");
    return patterns.every((pattern) => pattern.test(source));
  });
};

// sonichi/sutando#2228
test("no file is looked for under the path of a URL, where a space is %20", () => {
  expect(sourcesWith(["."], /import\.meta\.url\)\.pathname/)).toEqual([]);
});

// ad-si/Transity#32
test("no file is renamed out of the folder for temporary files, which may lie on another disk", () => {
  expect(sourcesWith([":!*.test.ts"], /tmpdir\(|TMPDIR/, /\brename(Sync)?\(/)).toEqual([]);
});

// fastenhealth/fasten-onprem#41
test("nothing in a browser needs https: a console in a house's network has none", () => {
  const secureOnly = /crypto\.subtle|randomUUID|navigator\.(clipboard|locks|serviceWorker)/;
  const folders = ["console/src", "client-sdk/src", "protocol/src", ":!*.test.ts"];
  expect(sourcesWith(folders, secureOnly)).toEqual([]);
});

// openclaw/openclaw#73676, nodejs/node#57045
test.skipIf(process.platform === "win32")(
  "a current folder that was removed is no bug of a command that needs it",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-field-"));
    const agent = ["agent", "run", "pump.js", "--agent", "pump"];
    for (const [file, ...args] of [
      ["tools/src/main.ts", ...agent],
      ["simulator/src/main.ts", "run", "--program", "pump.js", "--agents", "1", "--call", "x"],
    ] as const) {
      const line = [process.execPath, join(ROOT, file), ...args].map((word) => `'${word}'`);
      const there = `mkdir -p '${folder}' && cd '${folder}' && rmdir '${folder}'`;
      const { status, stderr } = spawnSync("sh", ["-c", `${there} && exec ${line.join(" ")}`], {
        encoding: "utf8",
      });
      expect([status, stderr]).toEqual([
        2,
        expect.stringMatching(/: the current folder was removed: change to another one\n$/),
      ]);
    }
  },
);

// senigami/audiobook-studio#246, vavallee/bindery#900
test("a backup has the rows of the write-ahead log, in a folder of any name", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-field-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const odd = join(folder, process.platform === "win32" ? "a #1 %20 ü" : "a #1 %20 ü?");
  mkdirSync(odd);
  const init = relay(["init", "--data", odd, "--username", "ada", "--password-stdin", "--no-totp"]);
  expect([init.status, init.stderr]).toEqual([0, expect.any(String)]);
  const name = readdirSync(join(odd, "store")).find((file) => /\.(db|sqlite3?)$/.test(file)) ?? "";
  // Held open, so that what is written stays in the log.
  const live = new DatabaseSync(join(odd, "store", name));
  onTestFinished(() => live.close());
  live.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0");
  live.exec("create table newest (what text); insert into newest values ('here')");
  const to = join(odd, "copy 100%.db");
  const backup = relay(["backup", "--data", odd, "--to", to]);
  expect([backup.status, backup.stderr]).toEqual([0, expect.any(String)]);
  const copy = new DatabaseSync(to, { readOnly: true });
  onTestFinished(() => copy.close());
  expect(copy.prepare("select what from newest").all()).toEqual([{ what: "here" }]);
});
