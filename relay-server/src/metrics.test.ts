/** `/metrics`: both kinds of lock-out are counted, and what cannot be collected ends no relay. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Gauge, Registry } from "prom-client";
import { expect, test } from "vitest";
import { UsernameLockout } from "./control/username-lockout.ts";
import type { HubStats } from "./core/hub.ts";
import { Lockout } from "./core/lockout.ts";
import { metricsServer, relayMetrics } from "./metrics.ts";
import { newTimings } from "./ops/durations.ts";

test("a name that is guessed from many addresses is counted apart from addresses shut out", async () => {
  const [lockout, names] = [new Lockout(), new UsernameLockout()];
  const registry = relayMetrics(() => ({}) as HubStats, { lockout, names }, newTimings());
  for (let i = 0; i < 10; i += 1) names.fail("ada", `192.0.2.${i}`, i);
  const shown = (name: string) => registry.getSingleMetricAsString(name);
  expect(await shown("blindrelay_name_lockouts_total")).toContain("_total 1");
  expect(await shown("blindrelay_lockouts_total")).toContain("_total 0");
});

test("what cannot be collected is a 500 and a line in the log, and the next try is free", async () => {
  const registry = new Registry();
  let fails = true;
  new Gauge({
    name: "x",
    help: "x",
    registers: [registry],
    collect() {
      if (fails) throw new Error("no figures");
    },
  });
  const logged: unknown[] = [];
  const server = metricsServer(registry, { error: (...args: unknown[]) => logged.push(args) });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const get = () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  expect((await get()).status).toBe(500);
  expect(logged).toMatchObject([[{ err: { message: "no figures" } }, expect.any(String)]]);
  fails = false;
  const answer = await get();
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("x 0")]);
  server.closeAllConnections();
  server.close();
});
