/** Both stores, asked and changed in ways that made others' fail. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initStore, type RunningServer, startServer } from "@blindrelay/relay-server";
import { openData, postgres } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
}

const PASSWORD = "a long password";
const shared = postgres();

describe.each(["SQLite", "PostgreSQL"])("a relay on %s", (engine) => {
  const isShared = engine === "PostgreSQL";
  const data = mkdtempSync(join(tmpdir(), "blindrelay-field-"));
  let where: { data: string; store?: string };
  let relay: RunningServer;
  let authorization: string;

  const ask = (path: string, method = "GET", body?: string) =>
    fetch(relay.url + path, {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body }),
    });

  beforeAll(async () => {
    const location = isShared && !shared.skipped ? await shared.prepare() : null;
    where = { data, ...(location?.engine === "postgres" ? { store: location.url } : {}) };
    await initStore({ ...where, username: "ada", password: PASSWORD, totp: false });
    relay = await startServer({ ...where, port: 0, metricsPort: 0, logLevel: "silent" });
    const body = JSON.stringify({ username: "ada", password: PASSWORD });
    const { user } = await (await ask("/api/v1/auth/login", "POST", body)).json();
    authorization = `Bearer ${user.api_token}`;
  });
  afterAll(async () => {
    await relay.stop();
    if (where.store !== undefined) await shared.remove();
    rmSync(data, { recursive: true });
  });

  it.skipIf(isShared && shared.skipped)(
    "no U+0000 in an address or a body is a fault of it",
    async () => {
      const { paths } = await (await ask("/api/openapi.json")).json();
      const wrong: string[] = [];
      let asked = 0;
      for (const [path, operations] of Object.entries<Record<string, Operation>>(paths)) {
        for (const [method, { parameters = [] }] of Object.entries(operations)) {
          if (/logout|rotate|rekey/.test(path)) continue;
          const queries = parameters.filter((parameter) => parameter.in === "query");
          const query = queries.map(({ name }) => `${name}=a%00b`).join("&");
          const url = path.replaceAll(/\{\w+\}/g, "a%00b");
          const hasBody = ["post", "put", "patch"].includes(method);
          const body = hasBody
            ? '{"name":"a","metadata":{"a":"\\u0000"},"username":"\\u0000","notes":"\\u0000"}'
            : undefined;
          const { status } = await ask(`${url}?${query}`, method.toUpperCase(), body);
          asked++;
          if (status >= 500 || (status < 400 && url !== path))
            wrong.push(`${method} ${url}: ${status}`);
        }
      }
      expect(wrong).toEqual([]);
      expect(asked).toBeGreaterThan(20);
      const body = '{"name":"a","metadata":{"a":"\\u0000"}}';
      expect((await ask("/api/v1/agents", "POST", body)).status).toBe(422);
    },
  );

  // flynn/flynn#2235: "cached plan must not change result type"
  it.skipIf(isShared && shared.skipped)(
    "a migration under it does not end its connections' queries",
    async () => {
      const burst = () => Promise.all(Array.from({ length: 20 }, () => ask("/api/v1/agents")));
      const statuses = async () => new Set((await burst()).map(({ status }) => status));
      expect(await statuses()).toEqual(new Set([200]));
      const { store } = await openData(where);
      await store.db.schema.alterTable("agents").addColumn("later", "text").execute();
      await store.close();
      expect(await statuses()).toEqual(new Set([200]));
    },
  );
});
