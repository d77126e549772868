/** What operators can unlock and reset while the relay runs, without HTTP. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { initStore, openData } from "../control/data-dir.ts";
import { type RunningServer, startServer } from "../server.ts";
import { failTotp, findUserByName } from "../store/users.ts";
import { resetPassword, resetTotp, unlock } from "./users.ts";

const PASSWORD = "correct horse";

let data: string;
let server: RunningServer;
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), "blindrelay-operators-"));
  await initStore({ data, username: "ada", password: PASSWORD, totp: true });
  server = await startServer({
    data,
    port: 0,
    metricsPort: 0,
    logLevel: "silent",
    trustedProxies: ["127.0.0.1"],
  });
});
afterEach(async () => {
  await server.stop();
  rmSync(data, { recursive: true });
});

const logIn = async (address: string, username = "ada", password = PASSWORD) => {
  const answer = await fetch(`${server.url}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": address },
    body: JSON.stringify({ username, password }),
  });
  return { status: answer.status, body: await answer.json() };
};

test("a locked address is told what is locked, for how long and who can help, and is unlocked", async () => {
  for (let i = 0; i < 5; i += 1) await logIn("192.0.2.7", "nobody", "wrong password");
  const locked = await logIn("192.0.2.7");
  expect(locked.status).toBe(429);
  expect(locked.body.detail).toMatch(
    /^Address 192\.0\.2\.7 .*: locked for \d+ s more\. .*blindrelay-server unlock 192\.0\.2\.7$/,
  );
  expect(await unlock({ data }, "192.0.2.7")).toEqual({ address: "192.0.2.7", username: null });
  await vi.waitUntil(async () => (await logIn("192.0.2.7")).status === 401, 120_000);
});

test("a locked name is unlocked, and so is its second factor", async () => {
  for (let i = 0; i < 10; i += 1) await logIn(`192.0.2.${i + 1}`, "ada", "wrong password");
  const locked = await logIn("192.0.2.99");
  expect(locked.status).toBe(429);
  expect(locked.body.detail).toContain("Logins as ada");
  const { store } = await openData({ data });
  const user = async () => findUserByName(store.db, "ada");
  const id = (await user())?.id ?? "";
  await failTotp(store.db, id, { ms: [60_000], nowMs: Date.now() });
  expect((await user())?.totp_rests_until).toBeGreaterThan(Date.now());
  expect(await unlock({ data }, "ada")).toEqual({ address: null, username: "ada" });
  await vi.waitUntil(async () => (await logIn("192.0.2.99")).status === 401, 120_000);
  expect(await user()).toMatchObject({ totp_failures: 0, totp_rests_until: 0 });
  await store.close();
  await expect(unlock({ data }, "nobody")).rejects.toMatchObject({ exitCode: 5 });
});

test("a second factor and a password are reset, and everything obtained with the old password ends", async () => {
  expect((await logIn("192.0.2.1")).status).toBe(401); // no code
  await resetTotp({ data }, "ada");
  const enrolling = await logIn("192.0.2.1");
  expect(enrolling.status).toBe(200); // only permits enrolling
  const { store } = await openData({ data });
  await store.db
    .updateTable("settings")
    .set({ value: "optional" })
    .where("name", "=", "totp")
    .execute();
  await store.close();
  await server.stop();
  server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
  const { user } = (await logIn("192.0.2.1")).body;
  const link = new WebSocket(`${server.url.replace("http", "ws")}/wss`);
  await once(link, "open");
  link.send(JSON.stringify({ type: "auth", client_type: "client", api_token: user.api_token }));
  await once(link, "message");
  const closed = once(link, "close");
  await resetPassword({ data }, "ada", "another password");
  expect((await closed)[0]).toBe(1008);
  expect((await logIn("192.0.2.1")).status).toBe(401);
  expect((await logIn("192.0.2.1", "ada", "another password")).status).toBe(200);
  await expect(resetPassword({ data }, "ada", "short")).rejects.toMatchObject({ exitCode: 2 });
  await expect(resetTotp({ data }, "nobody")).rejects.toMatchObject({ exitCode: 5 });
});
