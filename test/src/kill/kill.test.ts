/**
 * `kill -9` of the relay during writes, twenty times: everything acknowledged is present after the
 * next start, and everything else is either complete or absent.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { initStore } from "@blindrelay/relay-server";
import { findUserByName, openData, repeatPersistent } from "@blindrelay/relay-server/testing";
import { afterEach, expect, test } from "vitest";

const MAIN = join(import.meta.dirname, "../../../relay-server/src/main.ts");
/** Two relays side by side, because a start takes most of a round's time. */
const LANES = 2;
const KILLS_PER_LANE = 10;
const WRITERS = 4;
const MAX_ACKNOWLEDGED_PER_ROUND = 40;
/** A lane starts eleven relays, one after another: minutes on a busy machine. */
const TIMEOUT_MS = 900_000;

let children: ChildProcess[] = [];
let folders: string[] = [];
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true });
  children = [];
  folders = [];
});

/** The permitted states of an agent now; null: it does not exist. */
interface State {
  readonly name: string;
  readonly token: string;
}
type Possible = (State | null)[];

test(`nothing acknowledged is lost in ${LANES * KILLS_PER_LANE} kills`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const env = compileOnce();
  const lanes = await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane, env)));
  const acknowledged = lanes.reduce((sum, lane) => sum + lane.acknowledged, 0);
  const interrupted = lanes.reduce((sum, lane) => sum + lane.interrupted, 0);
  expect(acknowledged).toBeGreaterThan(LANES * KILLS_PER_LANE * 5);
  // A kill that never interrupted a write would prove nothing.
  expect(interrupted).toBeGreaterThan(LANES * KILLS_PER_LANE);
});

const runLane = async (lane: number, env: NodeJS.ProcessEnv) => {
  const data = mkdtempSync(join(tmpdir(), "blindrelay-kill-"));
  folders.push(data);
  await initStore({ data, username: "admin", password: "correct horse", totp: false });
  const account = await accountToken(data);
  const agents = new Map<string, Possible>();
  const counts = { acknowledged: 0, interrupted: 0 };
  for (let round = 0; round < KILLS_PER_LANE; round++) {
    const { child, api } = await start(data, account, env);
    await verify(api, agents, `agent-${lane}-${round - 1}-`);
    await writeUntilKilled(child, api, agents, `${lane}-${round}`, counts);
  }
  const last = await start(data, account, env);
  await verify(last.api, agents, `agent-${lane}-${KILLS_PER_LANE - 1}-`);
  last.child.kill("SIGTERM");
  await once(last.child, "exit");
  return counts;
};

const accountToken = async (data: string): Promise<string> => {
  const { store, secrets } = await openData({ data });
  const user = await findUserByName(store.db, "admin");
  const owner = { userId: user?.id ?? "", agentId: null };
  const token = await repeatPersistent(store.db, secrets, owner);
  await store.close();
  return token ?? "";
};

// biome-ignore lint/suspicious/noExplicitAny: answers are read as plain JSON
type Api = (method: string, path: string, body?: object) => Promise<{ status: number; body: any }>;

/**
 * Compiling takes most of a start and need not be repeated twenty times; a killed process does not
 * save its cache.
 */
const compileOnce = (): NodeJS.ProcessEnv => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-compiled-"));
  folders.push(folder);
  // Without the options that make spawned processes record what they seal: a relay seals nothing.
  const env = { ...process.env, NODE_COMPILE_CACHE: folder, NODE_OPTIONS: "" };
  spawnSync(process.execPath, [MAIN, "--version"], { env });
  return env;
};

const start = async (data: string, account: string, env: NodeJS.ProcessEnv) => {
  const ports = ["--port", "0", "--metrics-port", "0", "--log-level", "error"];
  const child = spawn(process.execPath, [MAIN, "start", "--data", data, ...ports], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  children.push(child);
  const [line] = await once(createInterface(child.stdout), "line");
  const { url } = JSON.parse(line);
  const api: Api = async (method, path, body) => {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${account}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
  };
  return { child, api };
};

/** Each writer changes only its own agents, so that it knows their permitted states. */
const writeUntilKilled = async (
  child: ChildProcess,
  api: Api,
  agents: Map<string, Possible>,
  round: string,
  counts: { acknowledged: number; interrupted: number },
) => {
  let left = 1 + Math.floor(Math.random() * MAX_ACKNOWLEDGED_PER_ROUND);
  const exited = once(child, "exit");
  const write = async (writer: number) => {
    for (let step = 0; ; step++) {
      const agentId = `agent-${round}-${writer}-${Math.floor(step / 4)}`;
      const before = agents.get(agentId)?.[0] ?? null;
      const path = `/agents/${agentId}`;
      const [work, after] = step4(api, agentId, path, before, step % 4);
      // Until it is acknowledged, either state is permitted.
      agents.set(agentId, [before, after]);
      try {
        const { status, body } = await work();
        expect(status).toBeLessThan(300);
        agents.set(agentId, [after === null ? null : { ...after, ...tokenOf(body) }]);
      } catch (error) {
        if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
        counts.interrupted += 1;
        return; // the connection broke: the relay is dead
      }
      counts.acknowledged += 1;
      left -= 1;
      if (left === 0) child.kill("SIGKILL");
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  await exited;
};

/** Create, rename, rotate and, for every other agent, delete. `ANY`: the relay draws it. */
const ANY = "";
const step4 = (
  api: Api,
  agentId: string,
  path: string,
  before: State | null,
  step: number,
): [() => Promise<{ status: number; body: unknown }>, State | null] => {
  const name = `named at ${step}`;
  if (step === 0) {
    return [() => api("POST", "/agents", { agent_id: agentId, name }), { name, token: ANY }];
  }
  const state = before as State;
  if (step === 1) return [() => api("PATCH", path, { name }), { ...state, name }];
  if (step === 2) return [() => api("POST", `${path}/rotate-token`), { ...state, token: ANY }];
  return agentId.endsWith("0")
    ? [() => api("DELETE", path), null]
    : [() => api("PATCH", path, { name }), { ...state, name }];
};

const tokenOf = (body: unknown): { token?: string } => {
  const token = (body as { api_token?: string } | null)?.api_token;
  return token === undefined ? {} : { token };
};

/**
 * Every agent has a permitted state, and there are no others; for those whose identifier begins
 * with `recent` the token is checked too. Resolves open alternatives.
 */
const verify = async (api: Api, agents: Map<string, Possible>, recent: string) => {
  const names = new Map<string, string>();
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await api("GET", `/agents?limit=200${query}`);
    expect(status).toBe(200);
    for (const { agent_id, name } of body.items) names.set(agent_id, name);
    cursor = body.next_cursor;
  }
  for (const [agentId, possible] of agents) {
    const name = names.get(agentId) ?? null;
    const fitting = possible.filter((state) => (state?.name ?? null) === name);
    expect(fitting.length, `${agentId}: ${name} of ${JSON.stringify(possible)}`).toBeGreaterThan(0);
    names.delete(agentId);
    if (name === null) agents.set(agentId, [null]);
    if (name === null || !agentId.startsWith(recent)) continue;
    // Except after unfinished rotations, the token is the latest one that was answered.
    const known = fitting.map((state) => state?.token);
    const { body } = await api("GET", `/agents/${agentId}/export`);
    if (!known.includes(ANY)) expect(known, agentId).toContain(body.api_token);
    agents.set(agentId, [{ name, token: body.api_token }]);
  }
  expect([...names.keys()]).toEqual([]);
};
