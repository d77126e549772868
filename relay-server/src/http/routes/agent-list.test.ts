/** Filters of `GET /agents`. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { addAgent, writeSighting } from "../../store/agents.ts";
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

test("by a selector: labels, versions, globs and presence", async () => {
  await add("a", "Pump 1", "espruino 2v25", "1.4.0");
  await add("b", "Pump 2", "node 26.10.0", "1.5.0");
  await add("c", "Lamp");
  const label = (id: string, labels: Record<string, string>) =>
    rest.call("PATCH", `/agents/${id}`, { token, body: { labels } });
  await label("a", { site: "hall-7", line: "1" });
  await label("b", { site: "hall-8" });
  rest.online.add("b");
  const chosen = (where: string) => ids(`where=${encodeURIComponent(where)}`);
  expect(await chosen("label.site=hall-7")).toEqual(["a"]);
  expect(await chosen("label.site!=hall-7")).toEqual(["b", "c"]);
  expect(await chosen("label.site~hall-*,label.line=1")).toEqual(["a"]);
  expect(await chosen("label.none~*")).toEqual([]);
  expect(await chosen("firmware<1.5.0")).toEqual(["a"]);
  expect(await chosen("firmware>=1.4.0")).toEqual(["a", "b"]);
  expect(await chosen("firmware!=1.5.0")).toEqual(["a", "c"]);
  expect(await chosen("runtime~*26*")).toEqual(["b"]);
  expect(await chosen("runtime~node*10.0")).toEqual(["b"]);
  expect(await chosen("runtime~n*26*0")).toEqual(["b"]);
  expect(await chosen("runtime~N*")).toEqual([]);
  expect(await chosen("name~Pump 1*1")).toEqual([]);
  expect(await chosen("name~Lamp,id~*")).toEqual(["c"]);
  expect(await chosen("name~Pump*,online=false")).toEqual(["a"]);
  expect(await chosen("online!=false")).toEqual(["b"]);
  expect(await chosen("online=true,online=false")).toEqual([]);
  expect(await chosen("id=c")).toEqual(["c"]);
  // Replaced as a whole, and gone with the agent.
  await label("a", {});
  expect(await chosen("label.site~*")).toEqual(["b"]);
  await rest.call("DELETE", "/agents/b", { token });
  await add("b", "Pump 2");
  expect(await chosen("label.site~*")).toEqual([]);
});

test("a selector whose conditions match too many values together is 422", async () => {
  const { user } = await rest.login();
  await rest.context.store.write(async (tx) => {
    for (let i = 0; i < 7000; i += 1) {
      const row = { agent_id: `p-${i}`, name: `p ${i}`, metadata: "{}", created_at: i };
      await addAgent(tx, { ...row, user_id: user.id });
    }
  });
  const ask = (where: string) =>
    rest.call("GET", `/agents?limit=1&where=${encodeURIComponent(where)}`, { token });
  const most = "name~p*6*9*,id~p*6*9*";
  expect((await ask(most)).json().items).toHaveLength(1);
  const answer = await ask("name~p* *,id~p*-*,name~p*,id~p**,name~p **");
  expect(answer.statusCode).toBe(422);
  expect(answer.json().errors[0].message).toMatch("20000 values");
});

test.each(["pump", "online=maybe", "firmware<new", "label.A=x", "", "id=a,", "id=\0"])(
  "the selector %j is 422, and names where",
  async (where) => {
    const answer = await rest.call("GET", `/agents?where=${encodeURIComponent(where)}`, { token });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().errors[0]).toMatchObject({ path: "/where", in: "querystring" });
  },
);

test("labels are bounded in number, key and value", async () => {
  const post = async (labels: unknown) => {
    const body = { name: "Pump", labels };
    return (await rest.call("POST", "/agents", { token, body })).statusCode;
  };
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
  expect(await post(many(32))).toBe(201);
  expect(await post(many(33))).toBe(422);
  expect(await post({ ["k".repeat(63)]: "ü".repeat(128) })).toBe(201);
  expect(await post({ ["k".repeat(64)]: "v" })).toBe(422);
  expect(await post({ Site: "v" })).toBe(422);
  expect(await post({ site: "v".repeat(129) })).toBe(422);
  expect(await post({ site: 7 })).toBe(422);
  const { items } = await page("where=label.k31~*");
  expect(items.map(({ labels }: { labels: object }) => labels)).toEqual([many(32)]);
});
