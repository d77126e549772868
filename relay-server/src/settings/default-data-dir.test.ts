/** Where the relay keeps its data by default, and that git ignores it inside a repository. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { defaultDataFolder, hideFromGit } from "./default-data-dir.ts";

test.each([
  ["linux", {}, "/home/ada/.local/state/blindrelay/relay"],
  ["linux", { XDG_STATE_HOME: "/var/state" }, "/var/state/blindrelay/relay"],
  ["linux", { XDG_STATE_HOME: "" }, "/home/ada/.local/state/blindrelay/relay"],
  ["linux", { XDG_STATE_HOME: "state" }, "/home/ada/.local/state/blindrelay/relay"],
  ["darwin", {}, "/home/ada/Library/Application Support/blindrelay/relay"],
  ["win32", { LOCALAPPDATA: "/C/Local" }, "/C/Local/blindrelay/relay"],
  ["win32", {}, "/home/ada/AppData/Local/blindrelay/relay"],
] as const)("on %s with %j it is %s", (platform, environment, folder) => {
  expect(defaultDataFolder(environment, platform, "/home/ada")).toBe(folder);
});

test("git ignores a data folder inside a repository", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-git-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, encoding: "utf8" });
  git("init", "--quiet");
  const data = join(folder, "anything");
  mkdirSync(data);
  writeFileSync(join(data, "master.key"), "k");
  expect(git("status", "--porcelain")).toContain("anything/");
  hideFromGit(data);
  expect(git("status", "--porcelain")).toBe("");
});

test("an existing .gitignore is left alone, and no folder is created", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-git-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, ".gitignore"), "!*\n");
  hideFromGit(folder);
  expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("!*\n");
  expect(() => hideFromGit(join(folder, "away"))).not.toThrow();
});
