/** Keys on file systems without hard links: exFAT, SMB. */
import type fs from "node:fs";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { initStore, openData } from "./data-dir.ts";
import { rekey } from "./key-rotation.ts";
import { makeMasterKey, masterKeyPath } from "./master-key.ts";

const refuse = vi.hoisted(() => ({ code: null as string | null }));
vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const linkSync: typeof fs.linkSync = (from, to) => {
    if (refuse.code === null) return real.linkSync(from, to);
    throw Object.assign(new Error(`${refuse.code}: link`), { code: refuse.code });
  };
  return { ...real, linkSync };
});

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "blindrelay-master-key-"));
});
afterEach(() => rmSync(data, { recursive: true }));

test.each(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])(
  "where link() answers %s, a key is made and rotated all the same",
  async (code) => {
    refuse.code = code;
    await initStore({ data, username: "ada", password: "correct horse", totp: false });
    const first = readFileSync(masterKeyPath(data));
    expect([first.length, statSync(masterKeyPath(data)).mode & 0o777]).toEqual([32, 0o600]);
    const { oldKey } = await rekey({ data, graceDays: 0 });
    expect(readFileSync(oldKey as string).equals(first)).toBe(true);
    expect(statSync(oldKey as string).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(data, "key"))).toHaveLength(2);
    const { store } = await openData({ data });
    await store.close();
  },
);

test("another failure of link() is none of that, and leaves no key", () => {
  refuse.code = "EIO";
  expect(() => makeMasterKey(data, undefined)).toThrow(/cannot write the master key: EIO/);
  expect(existsSync(masterKeyPath(data))).toBe(false);
});
