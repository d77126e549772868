/** What the hub leaves for the store is written in one go, with the newest value of each. */
import { expect, test } from "vitest";
import { startRest } from "../http/testing/test-rest.ts";
import { hashToken } from "./secrets.ts";
import { storeWriteBehind } from "./write-behind.ts";

test("counts and times are written at a flush, the newest of each, and only once", async () => {
  const rest = await startRest();
  const token = (await rest.login()).user.api_token;
  await rest.call("POST", "/agents", { token, body: { name: "x", agent_id: "x" } });
  const session = (await rest.call("POST", "/auth/session", { token })).json().session_token;
  const writeBehind = storeWriteBehind(rest.context.store);
  const seenAt = Date.UTC(2027, 0, 1);
  const report = { runtime: "node 26.10.0", firmwareVersion: "1.2.3" };
  await writeBehind.agentSeen("x", seenAt - 2, { ...report, firmwareVersion: "1.2.2" }, true);
  await writeBehind.agentSeen("x", seenAt - 1, report, true);
  await writeBehind.agentSeen("x", seenAt, null, false); // it left: its report stays
  await writeBehind.agentSeen("deleted meanwhile", seenAt, report, true);
  await writeBehind.saveRequestsUsed(hashToken(session), 9_999, 9_999);
  await writeBehind.saveRequestsUsed(hashToken(session), 10_000, 1);
  const agent = async () => (await rest.call("GET", "/agents/x", { token })).json();
  const shown = async () => (await agent()).last_seen;
  expect(await shown()).toBeNull();
  await writeBehind.flush();
  expect(await shown()).toBe("2027-01-01T00:00:00.000Z");
  expect(await agent()).toMatchObject({ runtime: "node 26.10.0", firmware_version: "1.2.3" });
  expect((await rest.call("GET", "/account", { token: session })).json().code).toBe(
    "LIMIT_EXCEEDED",
  );
  await rest.context.store.db.updateTable("agents").set({ last_seen: null }).execute();
  await writeBehind.agentSeen("x", seenAt, null, false);
  void writeBehind.flush();
  await writeBehind.flush(); // nothing more is waiting, but a write is still in progress
  expect(await shown()).not.toBeNull();
  await rest.context.store.db.updateTable("agents").set({ last_seen: null }).execute();
  await writeBehind.flush();
  expect(await shown()).toBeNull();
  await writeBehind.agentSeen("x", seenAt, { runtime: null, firmwareVersion: null }, true);
  await writeBehind.flush();
  expect(await agent()).toMatchObject({ runtime: null, firmware_version: null });
  await rest.close();
});
