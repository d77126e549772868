/** For tests: both engines, each with its own store; PostgreSQL if one is listening. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { StoreLocation } from "../open.ts";

/**
 * Can be set to another server or user: a postgres:// URL of a database in which schemas can be
 * created.
 */
const address = new URL(
  process.env.BLINDRELAY_TEST_POSTGRES ?? "postgres://postgres@127.0.0.1:5432/test",
);
export const POSTGRES = { host: address.hostname, port: Number(address.port || 5432) };

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
  /** The server's first process, if it runs on this machine; 0 for SQLite. */
  pid(): Promise<number>;
}

export const sqlite = (): Engine => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-store-"));
  return {
    name: "SQLite",
    skipped: false,
    prepare: async () => ({ engine: "sqlite", path: join(folder, "relay.sqlite") }),
    remove: async () => rmSync(folder, { recursive: true }),
    pid: async () => 0,
  };
};

export const postgres = (): Engine => {
  const schema = `store_test_${randomUUID().replaceAll("-", "")}`;
  const admin = async (sql: string) => {
    const client = new pg.Client({ connectionString: String(address) });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  return {
    name: "PostgreSQL",
    skipped: !postgresIsThere,
    prepare: async () => {
      await admin(`create schema ${schema}`);
      const url = new URL(address);
      url.searchParams.set("options", `-c search_path=${schema}`);
      return { engine: "postgres", url: String(url) };
    },
    remove: () => admin(`drop schema ${schema} cascade`),
    pid: async () => {
      const client = new pg.Client({ connectionString: String(address) });
      await client.connect();
      const { rows } = await client.query("select pg_backend_pid() as pid");
      const stat = readFileSync(`/proc/${rows[0].pid}/stat`, "utf8");
      await client.end();
      return Number(stat.split(") ")[1]?.split(" ")[1]);
    },
  };
};
