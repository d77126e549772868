/** Filters of `GET /agents`. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeSighting } from "../../store/agents.ts";
import { type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const add = async (agent_id: string, name: string, runtime?: string, firmwareVersion?: string) => {
  await rest.call("POST", "/agents", { token, body: { name, agent_id } });
  if (runtime === undefined) return;
  const report = { runtime, firmwareVersion: firmwareVersion ?? null };
  await writeSighting(rest.context.store.db, agent_id, rest.clock.nowMs, report);
};
const page = async (query: string) =>
  (await rest.call("GET", `/agents?${query}`, { token })).json();
const ids = async (query: string) =>
  (await page(query)).items.map((agent: { agent_id: string }) => agent.agent_id);

test("by the beginning of name and runtime, exactly and without wildcards", async () => {
  await add("a", "Pump 1", "espruino 2v25 ESP32", "1.0.0");
  await add("b", "pump 2", "espruino 2v25 PUCKJS", "1.1.0");
  await add("c", "P%mp", "node 26.10.0", "1.1.0");
  await add("d", "Pümp");
  expect(await ids("name=Pump")).toEqual(["a"]);
  expect(await ids("name=P%25")).toEqual(["c"]);
  expect(await ids(`name=${encodeURIComponent("Pü")}`)).toEqual(["d"]);
  expect(await ids("runtime=espruino")).toEqual(["a", "b"]);
  expect(await ids("runtime=espruino&firmware_version=1.1.0")).toEqual(["b"]);
  expect(await ids("firmware_version=1.1")).toEqual([]);
});

test("by presence, page by page, each agent once", async () => {
  for (let i = 0; i < 7; i += 1) {
    rest.clock.nowMs += 1;
    await add(`a${i}`, "n");
    if (i % 2 === 0) rest.online.add(`a${i}`);
  }
  expect(await ids("online=false")).toEqual(["a1", "a3", "a5"]);
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const next: { items: { agent_id: string }[]; next_cursor: string | null } = await page(
      `online=true&limit=2${cursor === null ? "" : `&cursor=${cursor}`}`,
    );
    seen.push(...next.items.map((agent) => agent.agent_id));
    cursor = next.next_cursor;
  } while (cursor !== null);
  expect(seen).toEqual(["a0", "a2", "a4", "a6"]);
});

test("a search for a few online agents among very many continues with its cursor", async () => {
  const { user } = await rest.login();
  await rest.context.store.write(async (tx) => {
    for (let i = 0; i < 2002; i += 1) {
      const agent_id = `a${String(i).padStart(4, "0")}`;
      const row = { agent_id, user_id: user.id, name: "n", metadata: "{}", created_at: i };
      await tx.insertInto("agents").values(row).execute();
    }
  });
  rest.online.add("a2001");
  const first = await page("online=true");
  expect(first.items).toEqual([]);
  expect(first.next_cursor).not.toBeNull();
  const second = await page(`online=true&cursor=${first.next_cursor}`);
  expect(second.items).toHaveLength(1);
  expect(second.next_cursor).toBeNull();
});

test.each(["online=maybe", "name=", "name=%00", "runtime="])("%s is refused", async (query) => {
  expect((await rest.call("GET", `/agents?${query}`, { token })).statusCode).toBe(422);
});
