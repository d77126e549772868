/**
 * A database that takes the relay's role, rights or tables away while it runs: as its password is
 * rotated, or a dump is restored. That passes, so it is an outage and no fault of the relay.
 *
 * spring-cloud/spring-cloud-vault#152, IQSS/dataverse#9717
 */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { isInitialised, openStore } from "./open.ts";
import { postgres } from "./testing/engines.ts";
import { unavailability } from "./unavailable.ts";

const ADDRESS = process.env.BLINDRELAY_TEST_POSTGRES ?? "postgres://postgres@127.0.0.1:5432/test";

describe.skipIf(postgres().skipped)("a PostgreSQL that refuses", () => {
  const name = `refused_${randomUUID().replaceAll("-", "")}`;
  const url = Object.assign(new URL(ADDRESS), { username: name, password: "" });
  url.searchParams.set("options", `-c search_path=${name}`);
  const location = { engine: "postgres", url: String(url) } as const;
  const admin = async (...statements: string[]): Promise<void> => {
    const client = new pg.Client({ connectionString: ADDRESS });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  const DISCONNECT = `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${name}'`;
  beforeAll(() => admin(`create role ${name} login`, `create schema ${name}`));
  afterAll(() => admin(`drop schema ${name} cascade`, `drop role ${name}`));

  it("a schema that the role may not use: what to grant", async () => {
    const error = await openStore(location, true).catch((thrown) => thrown);
    expect(unavailability(error)?.message).toMatch(
      /no schema|permission denied for schema .*; grant usage, create on schema/,
    );
  });

  it.each([
    [`alter role ${name} nologin`, `alter role ${name} login`],
    [`alter schema ${name} rename to ${name}_away`, `alter schema ${name}_away rename to ${name}`],
    [
      `revoke all on all tables in schema ${name} from ${name}`,
      `grant all on all tables in schema ${name} to ${name}`,
    ],
  ])("%s", async (begin, end) => {
    await admin(`grant all on schema ${name} to ${name}`);
    const store = await openStore(location, true);
    onTestFinished(() => store.close());
    const write = () => store.write((tx) => tx.deleteFrom("settings").execute());
    await write();
    await admin(begin, DISCONNECT);
    await expect(write()).rejects.toSatisfy((error) => unavailability(error) !== null);
    expect(await store.isReady()).toBe(false);
    await admin(end);
    await expect.poll(() => store.isReady()).toBe(true);
    await write();
    expect(await isInitialised(location)).toBe(false);
  });

  it.each([
    ["revoke select on agents", "grant select on agents"],
    ["revoke insert on tokens", "grant insert on tokens"],
    ["revoke all on known_addresses", "grant all on known_addresses"],
  ])("%s: an outage until it is back, though the other tables answer", async (begin, end) => {
    await admin(`grant all on schema ${name} to ${name}`);
    const store = await openStore(location, true);
    onTestFinished(() => store.close());
    const table = begin.replace(/.* /, "") as "agents";
    const use = () =>
      store.write(async (tx) => {
        await tx.selectFrom(table).selectAll().execute();
        await sql`insert into ${sql.table(table)} default values`.execute(tx);
      });
    const write = () => store.write((tx) => tx.deleteFrom("settings").execute());
    const on = (statement: string) => statement.replace(" on ", ` on ${name}.`);
    await admin(`${on(begin)} from ${name}`);
    await expect(use()).rejects.toSatisfy((error) => unavailability(error) !== null);
    expect(await store.isReady()).toBe(false);
    await write();
    expect(await store.isWritable()).toBe(false);
    await admin(`${on(end)} to ${name}`);
    expect(await store.isWritable()).toBe(true);
    await admin(`alter table ${name}.audit rename to audit_away`);
    expect(await store.isWritable()).toBe(false);
    await admin(`alter table ${name}.audit_away rename to audit`);
    expect(await store.isWritable()).toBe(true);
  });
});
