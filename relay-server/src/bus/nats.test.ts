/** The transport over NATS, through what its server does. */
import { expect, test } from "vitest";
import { openNats } from "./nats.ts";
import { noNatsServer, ownNatsServer } from "./testing/nats-server.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {} };

test.skipIf(noNatsServer)("logins that are refused for a while do not end the bus", async () => {
  const login = (pass: string) => ["--user", "relay", "--pass", pass];
  const nats = await ownNatsServer(login("one"));
  const url = nats.url.replace("//", "//relay:one@");
  let refused = 0;
  const log = { ...silent, error: () => (refused += 1) };
  const transport = await openNats(url, "node", 1000, log as unknown as typeof silent);
  try {
    await nats.stop();
    await nats.start(login("two"));
    await expect.poll(() => refused).toBeGreaterThan(2);
    await nats.stop();
    await nats.start();
    await expect.poll(() => transport.isUp).toBe(true);
    transport.subscribe("a.b", () => {});
  } finally {
    await transport.close();
    await nats.stop();
  }
});
