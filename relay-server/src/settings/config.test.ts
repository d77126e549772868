/** Sources of settings, which one wins, and that an invalid setting is named. */
import { isAbsolute } from "node:path";
import { expect, test } from "vitest";
import { CONFIG_KEYS, flagOf, maskConfig, readConfig, variableOf } from "./config.ts";

test("every setting has a default", () => {
  expect(readConfig({ data: "d" })).toEqual({
    data: "d",
    host: "127.0.0.1",
    port: 8080,
    metricsHost: "127.0.0.1",
    metricsPort: 9090,
    trustedProxies: [],
    corsOrigin: [],
    store: "sqlite",
    bus: "local",
    busPrefix: "blindrelay",
    drainDelay: 0,
    releaseKeys: [],
    maxReleaseBytes: 67_108_864,
    logLevel: "info",
    maxMessageBytes: 65536,
    outboxBytes: 1048576,
    ratePerSecond: 1000,
    rateBurst: 2000,
    waitingPerAddress: 1024,
    clientsPerUser: 1000,
    agentsPerUser: 10_000,
    metadataBytesPerUser: 33_554_432,
    requestsPerMinute: 3000,
    anonymousRequestsPerMinute: 1200,
    requestsAtOnce: 4,
  });
  expect(isAbsolute(readConfig({}).data)).toBe(true);
  expect(() => readConfig({ data: "" })).toThrow("--data (or BLINDRELAY_DATA) must");
});

test("flags override the environment, which overrides the file", () => {
  const environment = { BLINDRELAY_PORT: "2", BLINDRELAY_METRICS_PORT: "3" };
  const file = { port: 4, metricsPort: 5, host: "::1" };
  expect(readConfig({ data: "d", port: "1" }, environment, file)).toMatchObject({
    port: 1,
    metricsPort: 3,
    host: "::1",
  });
});

test("lists are comma-separated in text, and arrays in the file", () => {
  const environment = { BLINDRELAY_TRUSTED_PROXIES: "10.0.0.0/8, ::1" };
  expect(readConfig({ data: "d" }, environment).trustedProxies).toEqual(["10.0.0.0/8", "::1"]);
  expect(readConfig({ data: "d" }, {}, { trustedProxies: ["::1"] }).trustedProxies).toEqual([
    "::1",
  ]);
});

test.each([
  [{ port: "x" }, "--port (or BLINDRELAY_PORT)"],
  [{ port: "65536" }, "--port (or BLINDRELAY_PORT)"],
  [{ port: "-1" }, "--port (or BLINDRELAY_PORT)"],
  [{ store: "mysql://x" }, "--store (or BLINDRELAY_STORE)"],
  [
    { logLevel: "loud" },
    /^--log-level \(or BLINDRELAY_LOG_LEVEL\) must be trace, debug, info, warn, error or silent$/,
  ],
  [{ corsOrigin: "*" }, "--cors-origin (or BLINDRELAY_CORS_ORIGIN)"],
  [{ corsOrigin: "https://app.example/" }, "--cors-origin (or BLINDRELAY_CORS_ORIGIN)"],
  [{ publicUrl: "relay.example" }, "--public-url (or BLINDRELAY_PUBLIC_URL)"],
])("%j is refused as a usage error", (flags, named) => {
  const read = () => readConfig({ data: "d", ...flags });
  expect(read).toThrow(named);
  expect(read).toThrow(expect.objectContaining({ exitCode: 2 }));
});

test("a file with an unknown setting is refused, unknown variables are ignored", () => {
  expect(() => readConfig({ data: "d" }, {}, { prot: 1 })).toThrow(
    "unknown setting in the configuration file: prot;",
  );
  expect(readConfig({ data: "d" }, { BLINDRELAY_URL: "http://x" }).port).toBe(8080);
});

test("each setting has one flag and one variable", () => {
  expect(flagOf("metricsPort")).toBe("--metrics-port");
  expect(variableOf("metricsPort")).toBe("BLINDRELAY_METRICS_PORT");
  expect(new Set(CONFIG_KEYS.map(variableOf)).size).toBe(CONFIG_KEYS.length);
});

test.each([
  ["local", "local"],
  ["nats://relay:secret@bus:4222", "nats://relay:***@bus:4222"],
  ["tls://token@bus:4222", "tls://***@bus:4222"],
  ["nats://token@a:4222,nats://token@b:4222", "nats://***"],
  ["nats://relay:secret@a:4222,b:4222", "nats://***"],
])("the bus %s is shown as %s", (bus, shown) => {
  const store = "postgres://ada@db/relay";
  expect(maskConfig(readConfig({ data: "d", store, bus })).bus).toBe(shown);
});

test.each([
  ["sqlite", "sqlite"],
  ["postgres://ada@db/relay", "postgres://ada@db/relay"],
  ["postgres://ada:secret@db/relay", "postgres://ada:***@db/relay"],
  ["postgres://ada@db/relay?password=secret", "postgres://ada@db/relay?password=***"],
  ["postgres://ada:sec#ret@db/relay", "postgres://***"],
])("the store %s is shown as %s", (store, shown) => {
  expect(maskConfig(readConfig({ data: "d", store })).store).toBe(shown);
});
