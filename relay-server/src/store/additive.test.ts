/**
 * The version before must still start on a store that a newer one has migrated: during a deployment
 * it may have to. So what an additive migration leaves is compared with what it found, and takes
 * every statement that the tests of commit 03d9d31 made the relay run.
 */
import { readFileSync } from "node:fs";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appliedTo, migrate, namesOf } from "./migrate.ts";
import { MIGRATIONS, type Migration } from "./migrations/index.ts";
import { openStore, type Store } from "./open.ts";
import { postgres, sqlite } from "./testing/engines.ts";

const STATEMENTS: { readonly [engine in "sqlite" | "postgres"]: readonly string[] } = JSON.parse(
  readFileSync(new URL("../../fixtures/03d9d31/statements.json", import.meta.url), "utf8"),
);
/** All that 03d9d31 knows. */
const BEFORE = MIGRATIONS.filter(({ additive }) => !additive);

type Column = { readonly type: string; readonly isNullable: boolean; readonly hasDefault: boolean };
interface Schema {
  /** By "table.column". */
  readonly columns: ReadonlyMap<string, Column>;
  /** By name; the table, and whether it is unique. */
  readonly indexes: ReadonlyMap<string, { readonly table: string; readonly unique: boolean }>;
}

/**
 * Of this schema alone: Kysely's own look asks about every schema of a PostgreSQL database, and
 * fails if another test drops one meanwhile.
 */
const columnsOf = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
): Promise<readonly (readonly [string, Column])[]> => {
  if (engine === "postgres") {
    const { rows } = await sql<Column & { name: string }>`
      select table_name || '.' || column_name as name, data_type as type,
        is_nullable = 'YES' as "isNullable",
        column_default is not null or is_identity = 'YES' as "hasDefault"
      from information_schema.columns where table_schema = current_schema()`.execute(db);
    return rows.map(({ name, ...column }) => [name, column]);
  }
  const tables = await db.introspection.getTables();
  return tables.flatMap((table) =>
    table.columns.map((column) => [
      `${table.name}.${column.name}`,
      {
        type: column.dataType,
        isNullable: column.isNullable,
        hasDefault: column.hasDefaultValue || column.isAutoIncrementing,
      },
    ]),
  );
};

const schemaOf = async (db: Kysely<unknown>, engine: "sqlite" | "postgres"): Promise<Schema> => {
  const columns = await columnsOf(db, engine);
  const { rows } =
    engine === "sqlite"
      ? await sql<{ name: string; table: string; unique: number }>`
          select list.name, master.name as "table", list."unique" from sqlite_master as master,
          pragma_index_list(master.name) as list where master.type = 'table'`.execute(db)
      : await sql<{ name: string; table: string; unique: boolean }>`
          select indexname as name, tablename as "table", indexdef like '%UNIQUE%' as "unique"
          from pg_indexes where schemaname = current_schema()`.execute(db);
  return {
    columns: new Map(columns),
    indexes: new Map(rows.map((row) => [row.name, { ...row, unique: Boolean(row.unique) }])),
  };
};

/** What the version before could stumble over. */
const breaks = (before: Schema, after: Schema): string[] => {
  const tables = new Set([...before.columns.keys()].map((name) => name.split(".")[0]));
  const changed = [...before.columns].flatMap(([name, column]) =>
    JSON.stringify(after.columns.get(name)) === JSON.stringify(column) ? [] : [`changed ${name}`],
  );
  const needed = [...after.columns].flatMap(([name, { isNullable, hasDefault }]) =>
    before.columns.has(name) ||
    isNullable ||
    hasDefault ||
    !tables.has(name.split(".")[0] as string)
      ? []
      : [`${name} has no default`],
  );
  const gone = [...before.indexes.keys()].flatMap((name) =>
    after.indexes.has(name) ? [] : [`no index ${name}`],
  );
  const stricter = [...after.indexes].flatMap(([name, { table, unique }]) =>
    unique && !before.indexes.has(name) && tables.has(table) ? [`${name} is unique`] : [],
  );
  return [...changed, ...needed, ...gone, ...stricter];
};

const refusedStatements = async (
  db: Kysely<unknown>,
  engine: "sqlite" | "postgres",
): Promise<string[]> => {
  const refused: string[] = [];
  for (const text of STATEMENTS[engine]) {
    const attempt = engine === "sqlite" ? `explain ${text}` : `prepare checked as ${text}`;
    try {
      await sql.raw(attempt).execute(db);
      if (engine === "postgres") await sql`deallocate checked`.execute(db);
    } catch (error) {
      refused.push(`${(error as Error).message}: ${text}`);
    }
  }
  return refused;
};

for (const [engine, kind] of [
  [sqlite, "sqlite"],
  [postgres, "postgres"],
] as const) {
  const each = engine();
  describe.skipIf(each.skipped)(each.name, () => {
    let made: ReturnType<typeof engine>;
    let store: Store;
    let db: Kysely<unknown>;
    beforeEach(async () => {
      made = engine();
      // One connection: a prepared statement belongs to it.
      store = await openStore(await made.prepare(), true, BEFORE);
      db = store.patient as Kysely<unknown>;
    });
    afterEach(async () => {
      await store.close();
      await made.remove();
    });

    it("an additive migration leaves all that the version before uses", async () => {
      expect(await refusedStatements(db, kind)).toEqual([]);
      for (const [index, { name, additive }] of MIGRATIONS.entries()) {
        if (!additive) continue;
        const before = await schemaOf(db, kind);
        await migrate(db, kind, undefined, MIGRATIONS.slice(0, index + 1));
        expect({ name, breaks: breaks(before, await schemaOf(db, kind)) }).toEqual({
          name,
          breaks: [],
        });
      }
      expect(await refusedStatements(db, kind)).toEqual([]);
    });

    it("the version before starts afterwards, and a newer one finds its work done", async () => {
      await migrate(db, kind);
      // All that 03d9d31 looks at.
      const { rows } = await sql<{ name: string }>`select name from migrations`.execute(db);
      expect(rows.map(({ name }) => name).sort()).toEqual(BEFORE.flatMap(namesOf));
      const additions = MIGRATIONS.filter(({ additive }) => additive).map(({ name }) => name);
      expect(await appliedTo(db, BEFORE)).toEqual({ missing: [], unknown: [], additions });
      await migrate(db, kind, undefined, BEFORE);
      expect(await appliedTo(db)).toEqual({ missing: [], unknown: [], additions: [] });
    });

    const raw = (text: string): Migration => ({
      name: "0099-broken",
      additive: true,
      up: async (tx) => {
        await sql.raw(text).execute(tx);
      },
    });
    it.each<readonly [string, string]>([
      ["alter table users drop column metadata_bytes", "changed users.metadata_bytes"],
      ["alter table agents rename column name to title", "changed agents.name"],
      ["alter table audit rename to acts", "changed audit.id"],
      ["drop index sessions_live", "no index sessions_live"],
      ["create unique index one_name on agents (name)", "one_name is unique"],
      ...(kind === "postgres"
        ? [
            [
              "alter table agents add column place text not null",
              "agents.place has no default",
            ] as const,
          ]
        : []),
    ])("finds what is not additive: %s", async (text, problem) => {
      const before = await schemaOf(db, kind);
      if (text.includes("metadata_bytes")) {
        for (const event of ["insert", "delete", "update"]) {
          const on = kind === "postgres" ? " on agents" : "";
          await sql.raw(`drop trigger agents_held_${event}${on}`).execute(db);
        }
      }
      await migrate(db, kind, undefined, [...BEFORE, raw(text)]);
      expect(breaks(before, await schemaOf(db, kind))).toContain(problem);
    });
  });
}
