/** `/metrics` while something cannot be collected: an answer, a line in the log, and no dead relay. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Gauge, Registry } from "prom-client";
import { expect, test } from "vitest";
import { metricsServer } from "./metrics.ts";

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
