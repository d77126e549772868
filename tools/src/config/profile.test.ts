/**
 * Profiles with a passphrase: nothing readable is left, and only the right passphrase opens them.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readToken } from "@blindrelay/protocol";
import { afterAll, expect, it } from "vitest";
import { keepKey } from "../account.ts";
import { makeCli } from "../cli.ts";
import { isSealed, type Profile, readProfile, writeProfile } from "./profile.ts";
import { Settings } from "./settings.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-profile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PROFILE: Profile = {
  url: "https://relay.example",
  username: "ada",
  account_token: "acct_kept",
  keyring: { "pump-7": { agent_token: "e2e_kept", packet_version: "2" } },
};
const path = join(folder, "default.json");
const settings = (passphrase?: string) =>
  new Settings(
    { BLINDRELAY_CONFIG_DIR: folder, ...(passphrase ? { BLINDRELAY_PASSPHRASE: passphrase } : {}) },
    "default",
  );

it("keeps secrets encrypted in a file of mode 0600, even after it is written again", () => {
  writeProfile(path, PROFILE);
  settings().update(() => PROFILE, "eight or more");
  const file = readFileSync(path, "utf8");
  expect(file).not.toMatch(/acct_|e2e_|pump-7/);
  expect([isSealed(path), statSync(path).mode & 0o777]).toEqual([true, 0o600]);
  const opened = settings("eight or more");
  expect(opened.profile).toEqual({ ...PROFILE, keyring: expect.objectContaining(PROFILE.keyring) });
  opened.update((profile) => profile && { ...profile, keyring: {} });
  expect(isSealed(path)).toBe(true);
  expect(readFileSync(path, "utf8")).not.toBe(file);
  expect(settings("eight or more").profile?.keyring).toEqual({});
});

it("refuses another passphrase, and a file whose relay was changed", () => {
  writeProfile(path, PROFILE, "eight or more");
  expect(() => readProfile(path, () => "eight or less")).toThrow(/wrong passphrase/);
  const moved = readFileSync(path, "utf8").replace("relay.example", "evil.example");
  writeFileSync(path, moved);
  expect(() => settings("eight or more").profile).toThrow(/wrong passphrase/);
});

it("prompts nobody if it is not needed", async () => {
  writeProfile(path, PROFILE);
  expect(settings().isLocked).toBe(false);
  expect(readProfile(path, () => expect.unreachable())?.username).toBe("ada");
  writeProfile(path, PROFILE, "eight or more");
  expect([settings().isLocked, settings("eight or more").isLocked]).toEqual([true, false]);
  // What a shell runs at each Tab.
  const cli = await makeCli({ BLINDRELAY_CONFIG_DIR: folder });
  cli.parse(["node", "blindrelay", "completion", "agents"]);
});

it("changes the file's current content, not what was read before", () => {
  writeProfile(path, PROFILE);
  const [first, second] = [settings(), settings()];
  expect(Object.keys(first.profile?.keyring ?? {})).toEqual(["pump-7"]);
  const key = { agent_token: "e2e_other", packet_version: "1" };
  keepKey(second, "tank-1", key);
  keepKey(first, "valve-1", key);
  expect(Object.keys(settings().profile?.keyring ?? {})).toEqual(["pump-7", "tank-1", "valve-1"]);
  expect(readdirSync(folder)).toEqual(["default.json", "default.json.lock"]);
});

it("changes it despite the lock file that an earlier version left behind", () => {
  writeProfile(path, PROFILE);
  writeFileSync(`${path}.lock`, "");
  keepKey(settings(), "pump-7", null);
  expect(settings().profile?.keyring).toEqual({});
});

it("opens a keyring that an earlier version wrote", () => {
  const kept = new URL("../../fixtures/keyring-03d9d31.json", import.meta.url);
  writeFileSync(path, readFileSync(kept), { mode: 0o600 });
  const { profile } = settings();
  expect(profile).toMatchObject({ url: "http://127.0.0.1:8080", username: "ada" });
  expect(Object.keys(profile?.keyring ?? {})).toEqual(["pump-7", "valve-2"]);
  for (const { agent_token } of Object.values(profile?.keyring ?? {})) {
    expect(readToken(agent_token)).toMatchObject({ ok: true, kind: "e2e" });
  }
});
