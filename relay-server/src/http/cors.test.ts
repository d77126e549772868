/** Browser pages of other origins: blocked by default, allowed by name. */
import { describe, expect, test } from "vitest";
import { startRest } from "./testing/test-rest.ts";

const APP = "https://app.example";
const preflight = (origin: string) => ({
  method: "OPTIONS" as const,
  url: "/api/v1/agents",
  headers: {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,idempotency-key",
  },
});

describe("with an origin allowed", () => {
  test("its pages may send what they need, and read the response", async () => {
    const rest = await startRest({ corsOrigins: [APP, "http://localhost:5173"] });
    const allowed = await rest.app.inject(preflight(APP));
    expect(allowed.statusCode).toBe(204);
    expect(allowed.headers).toMatchObject({
      "access-control-allow-origin": APP,
      "access-control-allow-headers": expect.stringContaining("authorization"),
      "access-control-allow-methods": expect.stringContaining("DELETE"),
      vary: expect.stringContaining("Origin"),
    });
    expect(allowed.headers).not.toHaveProperty("access-control-allow-credentials");
    const answer = await rest.app.inject({ url: "/api/v1/agents", headers: { origin: APP } });
    expect(answer.statusCode).toBe(401); // errors can be read too
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": APP,
      "access-control-expose-headers": expect.stringContaining("retry-after"),
    });
    // The clock of the relay, and what a range was taken from.
    for (const name of ["date", "etag", "content-range"])
      expect(`${answer.headers["access-control-expose-headers"]},`).toContain(` ${name},`);
    const other = await rest.app.inject(preflight("https://evil.example"));
    expect(other.headers).not.toHaveProperty("access-control-allow-origin");
    const missing = await rest.app.inject({ url: "/nothing", headers: { origin: APP } });
    const wrong = await rest.app.inject({ method: "DELETE", url: "/health" });
    expect([missing.statusCode, wrong.statusCode]).toEqual([404, 405]);
    await rest.close();
  });
});

test("an allowed page may send each header that an operation takes", async () => {
  const rest = await startRest({ corsOrigins: [APP] });
  type Operation = { parameters?: { in: string; name: string }[] };
  const { paths } = (await rest.app.inject("/api/openapi.json")).json();
  const operations = Object.values(paths).flatMap((path) => Object.values(path as object));
  const parameters = (operations as Operation[]).flatMap(({ parameters = [] }) => parameters);
  const names = new Set(parameters.filter((it) => it.in === "header").map(({ name }) => name));
  expect([...names].sort()).toEqual(["idempotency-key", "release-signature"]);
  const { headers } = await rest.app.inject(preflight(APP));
  const allowed = String(headers["access-control-allow-headers"]).split(", ");
  expect(allowed).toEqual(expect.arrayContaining([...names]));
  await rest.close();
});

test("by default no origin is allowed", async () => {
  const rest = await startRest();
  const refused = await rest.app.inject(preflight(APP));
  expect(refused.statusCode).toBe(405);
  const answer = await rest.app.inject({ url: "/api/v1/auth/config", headers: { origin: APP } });
  for (const { headers } of [refused, answer]) {
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  }
  await rest.close();
});
