/** For tests: both engines, each with a store of its own; PostgreSQL where one listens. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { StoreLocation } from "../open.ts";

const POSTGRES = { host: "127.0.0.1", port: 5432, user: "postgres", database: "test" };

const postgresIsThere = await new Promise<boolean>((resolve) => {
  const socket = connect(POSTGRES.port, POSTGRES.host, () => {
    socket.destroy();
    resolve(true);
  });
  socket.on("error", () => resolve(false));
});

export interface Engine {
  readonly name: string;
  readonly skipped: boolean;
  prepare(): Promise<StoreLocation>;
  remove(): Promise<void>;
}

export const sqlite = (): Engine => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-store-"));
  return {
    name: "SQLite",
    skipped: false,
    prepare: async () => ({ engine: "sqlite", path: join(folder, "relay.sqlite") }),
    remove: async () => rmSync(folder, { recursive: true }),
  };
};

export const postgres = (): Engine => {
  const schema = `store_test_${randomUUID().replaceAll("-", "")}`;
  const admin = async (sql: string) => {
    const client = new pg.Client(POSTGRES);
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  const { user, host, port, database } = POSTGRES;
  return {
    name: "PostgreSQL",
    skipped: !postgresIsThere,
    prepare: async () => {
      await admin(`create schema ${schema}`);
      const options = encodeURIComponent(`-c search_path=${schema}`);
      return {
        engine: "postgres",
        url: `postgres://${user}@${host}:${port}/${database}?options=${options}`,
      };
    },
    remove: () => admin(`drop schema ${schema} cascade`),
  };
};
