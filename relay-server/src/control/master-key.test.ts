/** Keys on file systems without hard links: exFAT, SMB. */
import fs, {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { initStore, openData } from "./data-dir.ts";
import { rekey } from "./key-rotation.ts";
import { makeMasterKey, makeNextKey, masterKeyPath } from "./master-key.ts";

/** What link() answers; live for all importers of node:fs, whenever they were loaded. */
const linkAnswers = (code: string): void => {
  vi.spyOn(fs, "linkSync").mockImplementation(() => {
    throw Object.assign(new Error(`${code}: link`), { code });
  });
  syncBuiltinESMExports();
};

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "blindrelay-master-key-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  rmSync(data, { recursive: true });
});

// MoonshotAI/kimi-code#3535
test.each(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])(
  "where link() answers %s, a key is made and rotated all the same",
  async (code) => {
    linkAnswers(code);
    await initStore({ data, username: "ada", password: "correct horse", totp: false });
    const first = readFileSync(masterKeyPath(data));
    expect([first.length, statSync(masterKeyPath(data)).mode & 0o777]).toEqual([32, 0o600]);
    const { oldKey } = await rekey({ data, graceDays: 0 });
    expect(readFileSync(oldKey as string).equals(first)).toBe(true);
    expect(statSync(oldKey as string).mode & 0o777).toBe(0o600);
    const names = ["master.key", basename(oldKey as string), "master.key.next.lock"];
    expect(readdirSync(join(data, "key")).sort()).toEqual(names.sort());
    const { store } = await openData({ data });
    await store.close();
  },
);

test("another failure of link() is none of that, and leaves no key", () => {
  linkAnswers("EIO");
  expect(() => makeMasterKey(data, undefined)).toThrow(/cannot write the master key: EIO/);
  expect(existsSync(masterKeyPath(data))).toBe(false);
});

// As in linuxmint/xed#87.
test.skipIf(process.geteuid?.() !== 0)("keys made by root belong to the folder's owner", () => {
  chownSync(data, 65_534, 65_534);
  makeMasterKey(data, undefined);
  makeNextKey(data);
  const made = ["key", ...readdirSync(join(data, "key")).map((name) => join("key", name))];
  expect(made.map((name) => statSync(join(data, name)).uid)).toEqual([65_534, 65_534, 65_534]);
});
