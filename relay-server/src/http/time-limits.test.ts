/** Whoever opens connections and dawdles holds them for a bounded time, over https as over http. */
import { createServer } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../log.ts";
import { buildApp } from "./app.ts";
import { type Rest, startRest } from "./harness.ts";

let rest: Rest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.close());

test("a silent connection and a slow request have an end, on a server of one's own too", async () => {
  const own = buildApp(rest.context, createLog("silent"), (listener) => createServer(listener));
  for (const { server } of [rest.app, own]) {
    expect(server.timeout).toBe(60_000);
    expect(server.requestTimeout).toBe(3_600_000);
  }
  await own.close();
});
