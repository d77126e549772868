/**
 * Databases in other encodings than UTF-8, as servers without a locale or of an older site make
 * them. A name that the encoding lacks must not be a fault in the middle of the day.
 *
 * hasura/graphql-engine#7315, IQSS/dataverse#8278
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseSelector } from "@blindrelay/protocol/selector";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { initStore } from "../control/data-dir.ts";
import { checkRelay } from "../ops/check.ts";
import { chosenIn } from "./agent-selector.ts";
import { addAgent, listAgents } from "./agents.ts";
import { openStore } from "./open.ts";
import { postgres } from "./testing/engines.ts";
import { addUser } from "./users.ts";

const ADDRESS = process.env.BLINDRELAY_TEST_POSTGRES ?? "postgres://postgres@127.0.0.1:5432/test";
const NAMES = ["Küche Süd", "Łódź", "温度", "😀 1"];

describe.skipIf(postgres().skipped)("a PostgreSQL database's encoding", () => {
  const admin = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: ADDRESS });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  /** The address of an empty one, which ends with the test. */
  const databaseIn = async (encoding: string): Promise<string> => {
    const name = `encoded_${randomUUID().replaceAll("-", "")}`;
    await admin(
      `create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`,
    );
    onTestFinished(() => admin(`drop database ${name} with (force)`));
    return String(new URL(`/${name}`, ADDRESS));
  };

  it.each(["LATIN1", "WIN1251", "EUC_JP"])(
    "%s is refused before anything is made, with what to do",
    async (encoding) => {
      const url = await databaseIn(encoding);
      const data = mkdtempSync(join(tmpdir(), "blindrelay-encoding-"));
      onTestFinished(() => rmSync(data, { recursive: true }));
      const said = new RegExp(`encoding is ${encoding}.*encoding 'UTF8' template template0`);
      const options = { data, store: url, username: "ada", password: "a long password" };
      await expect(initStore({ ...options, totp: false })).rejects.toThrow(said);
      expect(readdirSync(data)).toEqual([]);
      await expect(openStore({ engine: "postgres", url }, true)).rejects.toThrow(said);
      const found = await checkRelay({ data, store: url }, "11".repeat(32), Date.now());
      expect(found).toContainEqual(
        expect.objectContaining({ detail: expect.stringMatching(said) }),
      );
    },
  );

  it.each(["UTF8", "SQL_ASCII"])("%s keeps and finds every name", async (encoding) => {
    const store = await openStore({ engine: "postgres", url: await databaseIn(encoding) }, true);
    onTestFinished(() => store.close());
    const id = randomUUID();
    await store.write(async (tx) => {
      const row = { id, username: "ada", role: "user" as const, password_hash: "x" };
      await addUser(tx, { ...row, created_at: 1, totp_secret: null, totp_confirmed: 0 });
      for (const [index, name] of NAMES.entries()) {
        const labels = JSON.stringify({ room: name });
        const agent = { agent_id: `a${index}`, user_id: id, name, created_at: index };
        await addAgent(tx, { ...agent, metadata: "{}", labels });
      }
    });
    const found = async (where: string) => {
      const chosen = await chosenIn(store.db, id, parseSelector(where));
      return (await listAgents(store.db, id, null, 10, { chosen })).map((row) => row.agent_id);
    };
    for (const [index, name] of NAMES.entries()) {
      const [first = "", ...rest] = [...name];
      for (const key of ["name", "label.room"]) {
        const forms = [name, `${first}*`, `*${rest.join("")}`, `${first}*${rest.join("")}`];
        for (const form of [...forms, `*${name}*`]) {
          expect([form, await found(`${key}~${form}`)]).toEqual([form, [`a${index}`]]);
        }
        expect(await found(`${key}~${first}*${name}`)).toEqual([]);
      }
      const listed = await listAgents(store.db, id, null, 10, { name: first });
      expect(listed.map((row) => row.agent_id)).toEqual([`a${index}`]);
    }
  });
});
