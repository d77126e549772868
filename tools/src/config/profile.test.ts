/**
 * Profiles with a passphrase: nothing readable is left, and only the right passphrase opens them.
 */
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readToken } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { afterAll, expect, it } from "vitest";
import { keepKey } from "../account/account.ts";
import { makeCli } from "../cli.ts";
import {
  isSealed,
  listCopies,
  type Profile,
  readProfile,
  restoreCopy,
  writeProfile,
} from "./profile.ts";
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
  for (const name of readdirSync(folder)) {
    expect(readFileSync(join(folder, name), "latin1"), name).not.toMatch(/acct_|e2e_|pump-7/);
  }
  const opened = settings("eight or more");
  expect(opened.profile).toEqual({ ...PROFILE, keyring: expect.objectContaining(PROFILE.keyring) });
  opened.update((profile) => profile && { ...profile, keyring: {} });
  expect(isSealed(path)).toBe(true);
  expect(readFileSync(path, "utf8")).not.toBe(file);
  expect(settings("eight or more").profile?.keyring).toEqual({});
});

it("says what is in the place of its file, without waiting for a pipe", () => {
  const other = join(mkdtempSync(join(folder, "other-")), "default.json");
  writeFileSync(`${other}.1`, JSON.stringify(PROFILE));
  const restore = () => restoreCopy(other, listCopies(other)[0] as never);
  mkdirSync(other);
  expect(() => readProfile(other)).toThrow(/is a folder.* mount the folder that it is in/);
  expect(restore).toThrow(Failure);
  rmdirSync(other);
  execFileSync("mkfifo", [other]);
  expect(() => readProfile(other)).toThrow(/is a pipe/);
  expect(restore).toThrow(/is a pipe/);
  rmSync(dirname(other), { recursive: true });
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
  cli.parse(["node", "blindrelay", "completion", "offers", "--", "call", ""]);
});

it("changes the file's current content, not what was read before", () => {
  writeProfile(path, PROFILE);
  const [first, second] = [settings(), settings()];
  expect(Object.keys(first.profile?.keyring ?? {})).toEqual(["pump-7"]);
  const key = { agent_token: "e2e_other", packet_version: "1" };
  keepKey(second, "tank-1", key);
  keepKey(first, "valve-1", key);
  expect(Object.keys(settings().profile?.keyring ?? {})).toEqual(["pump-7", "tank-1", "valve-1"]);
  const copies = ["default.json.1", "default.json.2", "default.json.3"];
  expect(readdirSync(folder)).toEqual(["default.json", ...copies, "default.json.lock"]);
});

it("changes it despite the lock file that an earlier version left behind", () => {
  writeProfile(path, PROFILE);
  writeFileSync(`${path}.lock`, "");
  keepKey(settings(), "pump-7", null);
  expect(settings().profile?.keyring).toEqual({});
});

const MARK = "\ufeff";
const TEXT = `${JSON.stringify(PROFILE, null, 2)}\n`;

// getpaseo/paseo#4695
it("reads what an editor saved with a byte order mark", () => {
  writeFileSync(path, MARK + TEXT);
  expect(readProfile(path)?.username).toBe("ada");
});

it.each([
  ["a comma too many", TEXT.replace('"ada",', '"ada",,'), /invalid JSON \(line 3, column 21\)/],
  ["a file that was cut off", TEXT.slice(0, -20), /invalid JSON \(line \d+, column \d+\)/],
  ["an empty file", "", /invalid JSON \(line 1, column 1\)/],
  ["UTF-16", Buffer.from(MARK + TEXT, "utf16le"), /UTF-16 text; save it as UTF-8/],
  ["UTF-16 without a mark", Buffer.from(TEXT, "utf16le"), /UTF-16 text; save it as UTF-8/],
  ["Latin-1", Buffer.from(TEXT.replace("ada", "é"), "latin1"), /not UTF-8 text \(line 3\)/],
  ["another value", "[]", /is no JSON object/],
  ["a member of another type", TEXT.replace('"2"', "2"), /"keyring" of the profile/],
])("never advises to remove a keyring: %s", (_what, content, reason) => {
  writeProfile(path, PROFILE);
  writeFileSync(path, content);
  const say = (): unknown => readProfile(path);
  expect(say).toThrow(reason);
  expect(say).toThrow(/keep it|save it as UTF-8/);
  expect(say).not.toThrow(/remove|delete|log in again/);
});

it("says how many secrets a broken keyring holds, and that a good copy is there", () => {
  const key = { agent_token: `e2e_${"0".repeat(49)}`, packet_version: "1" };
  const two = { a: key, b: { ...key, agent_token: `e2e_${"1".repeat(49)}` } };
  writeProfile(path, { ...PROFILE, keyring: two });
  writeProfile(path, { ...PROFILE, keyring: two });
  writeFileSync(path, readFileSync(path, "utf8").slice(0, -3));
  expect(() => readProfile(path)).toThrow(/only copy of 2 end-to-end secrets.*profile restore/);
});

it("keeps members that it does not know", () => {
  writeFileSync(path, JSON.stringify({ ...PROFILE, colour: "blue" }));
  keepKey(settings(), "tank-1", { agent_token: "e2e_other", packet_version: "1" });
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ colour: "blue" });
});

it("removes what a killed command left unfinished beside a link and beside its file", () => {
  const [here, real] = [join(folder, "linked"), join(folder, "real")];
  for (const each of [here, real]) mkdirSync(each);
  writeFileSync(join(real, "kept.json"), JSON.stringify(PROFILE));
  symlinkSync(join(real, "kept.json"), join(here, "default.json"));
  writeFileSync(join(here, "default.json.1.4711.new"), "secrets");
  writeFileSync(join(real, "kept.json.4711.new"), "secrets");
  writeProfile(join(here, "default.json"), PROFILE);
  expect([readdirSync(here), readdirSync(real)]).toEqual([
    ["default.json", "default.json.1"],
    ["kept.json"],
  ]);
});

it("removes what a killed command left unfinished", () => {
  writeFileSync(`${path}.4711.new`, "secrets");
  writeProfile(path, PROFILE);
  expect(readdirSync(folder)).not.toContain("default.json.4711.new");
});

const profileCommand = async (...args: string[]): Promise<void> => {
  const cli = await makeCli({ BLINDRELAY_CONFIG_DIR: folder }, ["profile"]);
  await cli.parseAsync(["node", "blindrelay", "profile", ...args]);
};

it("goes back to the last good copy, past broken ones, and keeps the file before it", async () => {
  writeProfile(path, PROFILE);
  writeProfile(path, { ...PROFILE, username: "eve" });
  writeFileSync(path, "broken 1");
  await profileCommand("restore");
  expect(readProfile(path)?.username).toBe("ada");
  writeFileSync(path, "broken 2");
  await profileCommand("restore");
  expect(readProfile(path)?.username).toBe("ada");
  expect(readFileSync(`${path}.replaced-1`, "utf8")).toBe("broken 1");
  expect(readFileSync(`${path}.replaced-2`, "utf8")).toBe("broken 2");
});

it("makes no new profile in place of one that is gone while its copies are there", async () => {
  writeProfile(path, PROFILE);
  writeProfile(path, PROFILE);
  rmSync(path);
  expect(() => writeProfile(path, { ...PROFILE, keyring: {} })).toThrow("profile restore");
  await profileCommand("restore");
  expect(readProfile(path)?.keyring).toEqual(PROFILE.keyring);
});

it("removes no file that was replaced while only that has a secret", async () => {
  const home = join(folder, "restored");
  const file = join(home, "default.json");
  const secret = `e2e_${"1".repeat(49)}`;
  writeProfile(file, PROFILE);
  writeFileSync(`${file}.replaced-1`, `{"keyring":{"pump-8":{"agent_token":"${secret}",`);
  const restored = () => new Settings({ BLINDRELAY_CONFIG_DIR: home }, "default");
  expect(() => restored().forgetToken()).toThrow(/replaced-1 .* 1 of the secrets/);
  expect(() => restored().update((kept) => kept, "eight or more")).toThrow("replaced-1");
  expect(restored().profile?.account_token).toBe("acct_kept");
  keepKey(restored(), "pump-8", { agent_token: secret, packet_version: "1" });
  restored().forgetToken();
  expect(readdirSync(home).sort()).toEqual(["default.json", "default.json.1", "default.json.lock"]);
});

it("removes no sealed file that was replaced while only that has a secret", () => {
  const home = join(folder, "restored-sealed");
  const file = join(home, "default.json");
  const replaced = `${file}.replaced-1`;
  const key = { agent_token: `e2e_${"2".repeat(49)}`, packet_version: "1" };
  const passphrase = "eight or more";
  writeProfile(replaced, { ...PROFILE, keyring: { "pump-8": key } }, passphrase);
  writeProfile(file, PROFILE, passphrase);
  const env = { BLINDRELAY_CONFIG_DIR: home, BLINDRELAY_PASSPHRASE: passphrase };
  const restored = () => new Settings(env, "default");
  expect(() => restored().forgetToken()).toThrow(/replaced-1 .* 1 of the secrets/);
  // No passphrase is known any more.
  writeProfile(file, PROFILE);
  expect(() => restored().forgetToken()).toThrow(/replaced-1 .* may have secrets/);
  const sealed = readFileSync(replaced, "utf8");
  writeFileSync(replaced, sealed.slice(0, -4));
  expect(() => restored().forgetToken()).toThrow(/replaced-1 .* may have secrets/);
  expect(restored().profile?.account_token).toBe("acct_kept");
  writeFileSync(replaced, sealed);
  keepKey(restored(), "pump-8", key);
  restored().update((kept) => kept, passphrase);
  expect(readdirSync(home).sort()).toEqual(["default.json", "default.json.1", "default.json.lock"]);
});

it("stays readable if its passphrase was removed while somebody typed it", () => {
  const home = join(folder, "typed");
  const file = join(home, "default.json");
  writeProfile(file, PROFILE, "eight or more");
  const typing = {
    BLINDRELAY_CONFIG_DIR: home,
    get BLINDRELAY_PASSPHRASE() {
      writeProfile(file, PROFILE);
      return "eight or more";
    },
  };
  new Settings(typing, "default").update((kept) => kept && { ...kept, account_token: "acct_new" });
  expect([isSealed(file), readProfile(file)?.account_token]).toEqual([false, "acct_new"]);
});

it("never copies a broken file over a good copy", () => {
  writeProfile(path, PROFILE);
  writeProfile(path, PROFILE);
  writeFileSync(path, "broken");
  for (let i = 0; i < 5; i++) {
    writeProfile(path, PROFILE);
    writeFileSync(path, "broken");
  }
  expect(readProfile(`${path}.1`)?.username).toBe("ada");
});

const OTHER = "https://other.example";

it("an explicit profile takes precedence over the environment", () => {
  writeProfile(path, PROFILE);
  const env = {
    BLINDRELAY_CONFIG_DIR: folder,
    BLINDRELAY_URL: OTHER,
    BLINDRELAY_ACCOUNT_TOKEN: "acct_given",
    BLINDRELAY_AGENT_TOKEN: "e2e_given",
    BLINDRELAY_PACKET_VERSION: "1",
  };
  const explicit = new Settings(env, "default", true);
  expect(explicit.httpUrl()).toBe(PROFILE.url);
  expect(explicit.socketUrl()).toBe("wss://relay.example/wss");
  expect(explicit.accountToken()).toBe("acct_kept");
  expect(explicit.secretOf("pump-7")).toEqual({
    agentToken: "e2e_kept",
    version: "2",
    deviceKey: null,
  });
  expect(() => new Settings(env, "missing", true).accountToken()).toThrow(/there is no profile/);
  const implicit = new Settings(env, "default");
  expect([implicit.httpUrl(), implicit.accountToken()]).toEqual([OTHER, "acct_given"]);
});

it("variables about the agent that BLINDRELAY_AGENT_ID names are not used for another", () => {
  const other = { agent_token: "e2e_other", packet_version: "1" };
  writeProfile(path, { ...PROFILE, keyring: { ...PROFILE.keyring, "lamp-1": other } });
  const env = {
    BLINDRELAY_CONFIG_DIR: folder,
    BLINDRELAY_AGENT_ID: "lamp-1",
    BLINDRELAY_AGENT_TOKEN: "e2e_given",
    BLINDRELAY_PACKET_VERSION: "4",
    BLINDRELAY_DEVICE_KEY: "given",
    BLINDRELAY_RELAY_TOKEN: "agt_given",
    BLINDRELAY_DEVICE_SECRET: "half",
  };
  const given = new Settings(env, "default");
  const kept = { agentToken: "e2e_kept", version: "2", deviceKey: null };
  expect(given.secretOf("pump-7")).toEqual(kept);
  expect([given.relayToken("pump-7"), given.deviceSecret("pump-7")]).toEqual([null, null]);
  expect(() => given.secretOf("pump-8")).toThrow(/no end-to-end secret for pump-8/);
  const its = { agentToken: "e2e_given", version: "4", deviceKey: "given" };
  expect(given.secretOf("lamp-1")).toEqual(its);
  expect([given.relayToken("lamp-1"), given.deviceSecret("lamp-1")]).toEqual(["agt_given", "half"]);
  const { BLINDRELAY_AGENT_ID: _, ...unnamed } = env;
  expect(new Settings(unnamed, "default").secretOf("pump-7")).toEqual(its);
});

it("a profile's token goes to that profile's relay only", () => {
  writeProfile(path, PROFILE);
  const env = { BLINDRELAY_CONFIG_DIR: folder, BLINDRELAY_URL: OTHER };
  expect(() => new Settings(env, "default").accountToken()).toThrow(
    /account token is for https:\/\/relay\.example, and BLINDRELAY_URL is https:\/\/other/,
  );
  const same = { ...env, BLINDRELAY_URL: "wss://relay.example/wss" };
  expect(new Settings(same, "default").accountToken()).toBe("acct_kept");
});

it("asks for no home folder as long as the environment says everything", () => {
  const env = { BLINDRELAY_URL: OTHER, BLINDRELAY_ACCOUNT_TOKEN: "acct_given\n" };
  const given = new Settings(env, "default");
  expect([given.httpUrl(), given.accountToken()]).toEqual([OTHER, "acct_given"]);
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

it("logged out, it names a fix that has an effect", () => {
  const { account_token: _, ...loggedOut } = PROFILE;
  writeProfile(join(folder, "out.json"), loggedOut);
  const env = { BLINDRELAY_CONFIG_DIR: folder };
  const messageOf = (isExplicit: boolean): string => {
    try {
      return new Settings(env, "out", isExplicit).accountToken();
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(messageOf(true)).toBe("which account? run: blindrelay --profile out login");
  expect(messageOf(false)).toContain("set BLINDRELAY_ACCOUNT_TOKEN");
});
