/** For tests: relays of one cluster in this process, over a real PostgreSQL and a real NATS. */
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { initStore } from "../control/data-dir.ts";
import { createLog } from "../log.ts";
import { type RunningServer, startServer } from "../server.ts";
import { postgres } from "../store/testing/engines.ts";
import { callRest, connectPeer, type RestResponse, type TestPeer } from "./peer.ts";

const PASSWORD = "correct horse";
const address = new URL(process.env.BLINDRELAY_TEST_NATS ?? "nats://127.0.0.1:4222");

export const NATS_URL = String(address);

const natsIsThere = await new Promise<boolean>((resolve) => {
  const socket = connectTcp(Number(address.port || 4222), address.hostname, () => {
    socket.destroy();
    resolve(true);
  });
  socket.on("error", () => resolve(false));
});

/** Whether the tests of a cluster cannot run here; they are then shown as skipped. */
export const noCluster = !natsIsThere || postgres().skipped;

export interface Node {
  readonly server: RunningServer;
  api(method: string, path: string, token: string | null, body?: object): Promise<RestResponse>;
  /** `from`: the address that a proxy has seen. */
  client(auth: object, from?: string): Promise<TestPeer>;
  agent(agent: { agent_id: string; api_token: string }): Promise<TestPeer>;
}

export interface TestCluster {
  readonly nodes: Node[];
  /** The address of the database. */
  readonly store: string;
  /** The first admin's account token. */
  readonly account: string;
  /** One more node; `settings` as in config.ts. */
  add(settings?: object): Promise<Node>;
  sql(text: string, values: unknown[]): Promise<void>;
  end(): Promise<void>;
}

/** Starts relays that share one store and one bus. */
export const startCluster = async (
  count: number,
  settings: { bus?: string; store?: string } & object = {},
): Promise<TestCluster> => {
  const engine = postgres();
  const location = await engine.prepare();
  if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-cluster-"));
  const first = join(folder, "first");
  const store = location.url;
  const busPrefix = `test_${randomBytes(6).toString("hex")}`;
  await initStore({ data: first, store, username: "admin", password: PASSWORD, totp: false });
  const nodes: Node[] = [];
  const add = async (more: object = {}): Promise<Node> => {
    const data = join(folder, `node${nodes.length}`);
    cpSync(join(first, "key"), join(data, "key"), { recursive: true });
    const base = {
      data,
      store,
      bus: NATS_URL,
      busPrefix,
      port: 0,
      metricsPort: 0,
      trustedProxies: ["127.0.0.1"],
    };
    const server = await startServer(
      { ...base, ...settings, ...more },
      { log: createLog("silent") },
    );
    nodes.push(nodeOf(server));
    return nodes.at(-1) as Node;
  };
  const end = async () => {
    await Promise.all(nodes.map(({ server }) => server.stop()));
    await engine.remove();
    rmSync(folder, { recursive: true });
  };
  const sql = async (text: string, values: unknown[]) => {
    const client = new pg.Client({ connectionString: store });
    await client.connect();
    await client.query(text, values);
    await client.end();
  };
  try {
    for (let i = 0; i < count; i++) await add();
  } catch (error) {
    await end();
    throw error;
  }
  const logIn = { username: "admin", password: PASSWORD };
  const answer = await (nodes[0] as Node).api("POST", "/auth/login", null, logIn);
  return { nodes, store, account: answer.body.user.api_token, add, sql, end };
};

const nodeOf = (server: RunningServer): Node => ({
  server,
  api: (...request) => callRest(server.url, ...request),
  client: (auth, from) => connectPeer(server.url, { client_type: "client", ...auth }, from),
  agent: ({ agent_id, api_token }) =>
    connectPeer(server.url, { client_type: "firmware", agent_id, api_token }),
});
