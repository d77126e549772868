/**
 * A stolen store yields no token (section 1): what a thief can do with all of `DIR/store`, without
 * the key.
 */
import { createHash, createHmac } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Rest, startRest } from "../http/testing/test-rest.ts";
import { openData } from "./data-dir.ts";
import { hashToken, Secrets } from "./secrets.ts";

let rest: Rest;
let loot: Buffer;
const secrets: Record<string, string> = {};

beforeAll(async () => {
  rest = await startRest({ totp: true });
  secrets.totp = rest.totpSecret as string;
  const first = await rest.login({ totp_code: rest.code() });
  secrets.login = first.access_token;
  secrets.account = first.user.api_token;
  const token = first.access_token;
  const enroll = { current_password: "correct horse", totp_code: "" };
  rest.clock.nowMs += 30_000;
  enroll.totp_code = rest.code();
  const drawn = (await rest.call("POST", "/auth/totp/enroll", { token, body: enroll })).json();
  secrets.secondTotp = drawn.secret;
  const body = { totp_code: rest.code(drawn.secret) };
  const confirmed = (await rest.call("POST", "/auth/totp/confirm", { token, body })).json();
  confirmed.recovery_codes.forEach((code: string, i: number) => {
    secrets[`recovery${i}`] = code;
  });
  const session = (await rest.call("POST", "/auth/session", { token })).json();
  secrets.session = session.session_token;
  const agent = (
    await rest.call("POST", "/agents", { token, body: { name: "x", agent_id: "x" } })
  ).json();
  secrets.agent = agent.api_token;
  secrets.password = "correct horse";
  const folder = join(rest.dataDir, "store");
  loot = Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))));
});
afterAll(() => rest.close());

test("it contains no secret, as text, base64 or hex", () => {
  expect(Object.keys(secrets).length).toBe(17);
  for (const [name, secret] of Object.entries(secrets)) {
    for (const form of ["utf8", "base64", "base64url", "hex"] as const) {
      const text = Buffer.from(secret).toString(form).replace(/=+$/, "");
      expect(loot.includes(text), `${name} as ${form}`).toBe(false);
    }
  }
  // check that the search works
  expect(loot.includes(hashToken(secrets.agent as string))).toBe(true);
});

test("ids and nonces yield no token without the key, nor with keys that a thief might guess", async () => {
  const rows = await rest.context.store.db.selectFrom("tokens").selectAll().execute();
  expect(rows.length).toBeGreaterThan(1);
  const check = rest.context.secrets.check();
  for (const row of rows) {
    const message = `${row.kind}/${row.agent_id ?? row.user_id}/${row.nonce}`;
    for (const key of [
      Buffer.alloc(32),
      Buffer.from(check, "hex"),
      Buffer.from(row.hash, "hex"),
      Buffer.from(row.nonce),
    ]) {
      const guess = makeToken(row.kind, createHmac("sha256", key).update(message).digest());
      expect(hashToken(guess)).not.toBe(row.hash);
    }
    const plain = makeToken(row.kind, createHash("sha256").update(message).digest());
    expect(hashToken(plain)).not.toBe(row.hash);
  }
});

test("a relay started on it with another key refuses to start", async () => {
  const den = mkdtempSync(join(tmpdir(), "blindrelay-den-"));
  cpSync(join(rest.dataDir, "store"), join(den, "store"), { recursive: true });
  await expect(openData({ data: den })).rejects.toThrow("no master key");
  await expect(openData({ data: den, masterKey: "00".repeat(32) })).rejects.toThrow("not the one");
  rmSync(den, { recursive: true });
});

test("a thief who inserts the check value of their own key gets neither tokens nor TOTP secrets", async () => {
  const den = mkdtempSync(join(tmpdir(), "blindrelay-den-"));
  cpSync(join(rest.dataDir, "store"), join(den, "store"), { recursive: true });
  const his = new Uint8Array(32).fill(7);
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(join(den, "store", "relay.sqlite"));
  const forged = new Secrets(his).check();
  database.prepare("update settings set value = ? where name = 'master_key_check'").run(forged);
  database.close();
  const data = await openData({ data: den, masterKey: Buffer.from(his).toString("hex") });
  const { repeatPersistent } = await import("./issue.ts");
  const user = await data.store.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
  for (const agentId of [null, "x"]) {
    await expect(
      repeatPersistent(data.store.db, data.secrets, { userId: user.id, agentId }),
    ).rejects.toThrow("does not match its hash");
  }
  expect(() => data.secrets.unwrap(user.id, user.totp_secret as string)).toThrow();
  await data.store.close();
  rmSync(den, { recursive: true });
});

test("the key is outside the store, and a damaged key file is reported", async () => {
  expect(readdirSync(join(rest.dataDir, "store")).some((file) => file.includes("key"))).toBe(false);
  const path = join(rest.dataDir, "key", "master.key");
  const key = readFileSync(path);
  expect(key.length).toBe(32);
  expect(loot.includes(key)).toBe(false);
  writeFileSync(path, key.subarray(1));
  await expect(openData({ data: rest.dataDir })).rejects.toThrow("31 bytes instead of 32");
  writeFileSync(path, key);
  const again = await openData({ data: rest.dataDir, masterKey: key.toString("base64url") });
  await again.store.close();
});
