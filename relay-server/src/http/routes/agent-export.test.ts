/** What a device needs, in its firmware's format: evaluated as that firmware would. */
import { runInNewContext } from "node:vm";
import { EXPORT_MEDIA_TYPES, ModdableManifest } from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Rest, startRest } from "../testing/test-rest.ts";
import { exportFormat } from "./agent-export.ts";

let rest: Rest;
let token: string;
let relayToken: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
  const body = { name: "x", agent_id: "pump-7" };
  relayToken = (await rest.call("POST", "/agents", { token, body })).json().api_token;
});
afterEach(() => rest.close());

const url = "ws://relay.example:8443/wss";
const exported = (query: string, accept?: string, host = "relay.example:8443") =>
  rest.call("GET", `/agents/pump-7/export${query}`, {
    token,
    headers: { host, ...(accept === undefined ? {} : { accept }) },
  });

test("a module for Espruino, requested by query or by Accept", async () => {
  for (const answer of [
    await exported("?format=espruino"),
    await exported("", "text/javascript"),
    await exported("?format=espruino", "application/json"),
  ]) {
    expect(answer.headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(answer.headers["cache-control"]).toBe("no-store");
    const module: { exports?: unknown } = {};
    runInNewContext(answer.body, { module });
    expect(module.exports).toEqual({ url, agent_id: "pump-7", relay_token: relayToken });
  }
});

test("a manifest for Moddable with a config that its modules import", async () => {
  const answer = await exported("?format=moddable");
  expect(answer.headers["content-type"]).toBe(`${EXPORT_MEDIA_TYPES.moddable}; charset=utf-8`);
  const manifest = JSON.parse(answer.body);
  expect(Value.Check(ModdableManifest, manifest)).toBe(true);
  expect(manifest.config.blindrelay).toEqual({ url, agentId: "pump-7", relayToken });
});

test("lines for a shell", async () => {
  const answer = await exported("", "text/plain");
  expect(answer.body).toBe(
    `BLINDRELAY_URL=${url.replace(/^ws(.*)\/wss$/, "http$1")}\nBLINDRELAY_AGENT_ID=pump-7\nBLINDRELAY_RELAY_TOKEN=${relayToken}\n`,
  );
});

test("a Host that would mean more than a host in a file is refused", async () => {
  const answer = await exported("?format=env", undefined, "x$(reboot)");
  expect([answer.statusCode, answer.json().code]).toEqual([400, "BAD_REQUEST"]);
  expect((await exported("?format=yaml")).statusCode).toBe(422);
});

test.each([
  [undefined, "json"],
  ["*/*", "json"],
  ["text/html, application/json;q=0.9", "json"],
  ["image/png, Text/Plain; q=0.5", "env"],
  ["application/javascript", "espruino"],
  [EXPORT_MEDIA_TYPES.moddable, "moddable"],
])("Accept %s is answered as %s", (accept, format) => {
  expect(exportFormat(undefined, accept)).toBe(format);
});
