/**
 * By hand: what a page of agents costs by selector, over REST, on both stores, interleaved in one
 * run. Prints one JSON line for each store: milliseconds (medians), and times a page without one.
 *
 *     node test/src/fleet/selector-cost.ts [AGENTS]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Rest } from "@blindrelay/client-sdk/rest";
import { initStore, startServer } from "@blindrelay/relay-server";
import { noPostgresPrograms, openData, ownPostgres } from "@blindrelay/relay-server/testing";

const PASSWORD = "a long password of one's own";
const ROUNDS = 20;
const AT_ONCE = 8;
/** A device's own program has a version of its own. */
const VERSIONS = 200;
const SELECTORS = [
  "",
  "label.site=hall-3",
  "label.site!=hall-3",
  "label.site~hall-*",
  "label.site~*a*-1*",
  "name~unit 1*",
  "id=unit-77",
  "runtime!=node",
  "firmware<1.50.0",
  "firmware>=1.50.0",
  "online=false",
  "label.site=hall-3,label.floor!=2,name~*9*",
  "label.site~hall-*,firmware<1.150.0,runtime=node,name~*9*",
];
const count = Number(process.argv[2] ?? "10000");

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;

const measure = async (name: string, folder: string, store: string | null): Promise<void> => {
  const data = join(folder, name);
  const place = store === null ? { data } : { data, store };
  await initStore({ ...place, username: "ada", password: PASSWORD, totp: false });
  const quotas = { requestsPerMinute: 1_000_000, agentsPerUser: count } as const;
  const settings = { ...place, ...quotas, port: 0, metricsPort: 0, logLevel: "silent" } as const;
  const relay = await startServer(settings);
  const login = await new Rest({ url: relay.url }).logIn({ username: "ada", password: PASSWORD });
  const rest = new Rest({ url: relay.url, token: login.user.api_token });
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) {
      const labels = { site: `hall-${n % 40}`, floor: String(n % 5) };
      const body = { name: `unit ${n}`, agent_id: `unit-${n}`, labels };
      await rest.ask("AgentCreated", "POST", "/agents", body);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const { store: own } = await openData(place);
  for (let version = 0; version < VERSIONS; version += 1) {
    const ids = Array.from({ length: count }, (_, n) => n).filter((n) => n % VERSIONS === version);
    await own.db
      .updateTable("agents")
      .set({ firmware_version: `1.${version}.0`, runtime: version % 3 === 0 ? "node" : "espruino" })
      .where(
        "agent_id",
        "in",
        ids.map((n) => `unit-${n}`),
      )
      .execute();
  }
  await own.close();
  const times = new Map(SELECTORS.map((where) => [where, [] as number[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const where of SELECTORS) {
      const query = where === "" ? "" : `?where=${encodeURIComponent(where)}`;
      const beganMs = performance.now();
      await rest.ask("AgentPage", "GET", `/agents${query}`);
      times.get(where)?.push(performance.now() - beganMs);
    }
  }
  const bare = median(times.get("") ?? []);
  const found = [...times].map(([where, all]) => {
    const ms = median(all);
    return [where, [Number(ms.toFixed(1)), Number((ms / bare).toFixed(1))]];
  });
  console.log(JSON.stringify({ store: name, agents: count, ...Object.fromEntries(found) }));
  await relay.stop();
};

const folder = mkdtempSync(join(tmpdir(), "blindrelay-selectors-"));
const database = mkdtempSync(join(tmpdir(), "blindrelay-selectors-"));
await measure("sqlite", folder, null);
if (noPostgresPrograms) console.error("no PostgreSQL here: skipped");
else {
  const postgres = await ownPostgres(database);
  await measure("postgres", folder, postgres.url);
  await postgres.stop("immediate");
}
rmSync(folder, { recursive: true });
rmSync(database, { recursive: true, force: true });
process.exit(0);
