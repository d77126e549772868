import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { giveToOwner, homeFolder, makeFolder, takePlaceOf } from "./file-owner.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(os.tmpdir(), "blindrelay-owner-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const make = (name: string, mode = 0o600): string => {
  const path = join(folder, name);
  writeFileSync(path, "");
  chmodSync(path, mode);
  return path;
};
const modeOf = (path: string): number => statSync(path).mode & 0o7777;

it("a user may have no home", () => {
  expect(homeFolder()).toBe(os.homedir());
  const none = vi.spyOn(os, "homedir").mockImplementation(() => {
    throw new Error("no entry");
  });
  syncBuiltinESMExports();
  expect(homeFolder()).toBe("");
  none.mockRestore();
  syncBuiltinESMExports();
});

describe("what takes the place of a file", () => {
  it("has its mode, without what is too much, as a path and as an open file", () => {
    const old = make("old", 0o4657);
    const made = make("made");
    takePlaceOf(made, old);
    expect(modeOf(made)).toBe(0o650);
    takePlaceOf(made, old, 0o400);
    expect(modeOf(made)).toBe(0o400);
    const file = openSync(made, "r");
    takePlaceOf(file, old);
    closeSync(file);
    expect(modeOf(made)).toBe(0o650);
  });

  it("keeps its own mode where there was no file", () => {
    const made = make("made", 0o640);
    takePlaceOf(made, join(folder, "none"));
    expect(modeOf(made)).toBe(0o640);
  });

  it("is usable where it cannot be changed", () => {
    const old = make("old", 0o644);
    expect(() => takePlaceOf(join(folder, "none"), old)).not.toThrow();
  });
});

it("a folder is made with its parents, for its owner alone; one that is there stays", () => {
  const made = [makeFolder(join(folder, "a", "b")), makeFolder(join(folder, "a", "b"))];
  expect(made).toEqual([join(folder, "a"), undefined]);
  expect([join(folder, "a"), join(folder, "a", "b")].map(modeOf)).toEqual([0o700, 0o700]);
  chmodSync(join(folder, "a"), 0o755);
  makeFolder(join(folder, "a"));
  expect(modeOf(join(folder, "a"))).toBe(0o755);
});

it.each(["file", "file/below", "nowhere"])("no folder is made at %s", (path) => {
  make("file", 0o644);
  symlinkSync("none/at/all", join(folder, "nowhere"));
  expect(() => makeFolder(join(folder, path))).toThrow(/EEXIST|ENOTDIR/);
});

it.runIf(existsSync("/proc/self"))("says it where nothing can be made, such as in /proc", () => {
  expect(() => makeFolder("/proc/x/y")).toThrow("ENOENT");
});

describe.skipIf(process.geteuid?.() !== 0)("what root makes in another user's folder", () => {
  const USER = 65_534;
  const ownerOf = (path: string): number[] => {
    const { uid, gid } = statSync(path);
    return [uid, gid];
  };
  beforeEach(() => chownSync(folder, USER, USER - 1));

  it("is given to the owner of what it is like, or else of its folder", () => {
    const made = make("made");
    expect(ownerOf(made)).toEqual([0, 0]);
    giveToOwner(made, join(folder, "none"));
    expect(ownerOf(made)).toEqual([USER, USER - 1]);
    const other = make("other");
    chownSync(other, 7, 8);
    const file = openSync(made, "r");
    giveToOwner(file, other);
    closeSync(file);
    expect(ownerOf(made)).toEqual([7, 8]);
    takePlaceOf(made, join(folder, "none"));
    expect(ownerOf(made)).toEqual([USER, USER - 1]);
  });

  it("is given away itself if it is a link, not what the link names", () => {
    const precious = make("precious");
    const link = join(folder, "link");
    symlinkSync(precious, link);
    giveToOwner(link, folder);
    expect(ownerOf(precious)).toEqual([0, 0]);
  });

  it("belongs to that user down from the first folder that was missing", () => {
    mkdirSync(join(folder, "there"));
    makeFolder(join(folder, "there", "a", "b"));
    expect(ownerOf(join(folder, "there"))).toEqual([0, 0]);
    chownSync(join(folder, "there"), 7, 8);
    makeFolder(join(folder, "there", "c", "d"));
    expect(["c", "c/d"].map((name) => ownerOf(join(folder, "there", name)))).toEqual([
      [7, 8],
      [7, 8],
    ]);
    makeFolder(join(folder, "there", "c", "d"));
    makeFolder(join(folder, "there"));
    expect(ownerOf(folder)).toEqual([USER, USER - 1]);
  });

  it("stays as it is if nobody can be found, and for everybody else", () => {
    const made = make("made");
    expect(() => giveToOwner(made, join(folder, "none", "at", "all"))).not.toThrow();
    vi.spyOn(process as { geteuid(): number }, "geteuid").mockReturnValue(1000);
    giveToOwner(made, folder);
    expect(ownerOf(made)).toEqual([0, 0]);
  });
});
