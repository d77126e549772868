/**
 * Stores of which pages, or the end, are lost or overwritten, before a start and under a running
 * relay: each either works, or is called damaged. A seed draws what is broken, and where. And
 * stores whose files are taken away under a relay.
 */
import { randomUUID } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Failure } from "@blindrelay/protocol/command-line";
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { initStore, storePath } from "../control/data-dir.ts";
import { type RunningServer, startServer } from "../server.ts";
import { callRest, connectPeer } from "../testing/peer.ts";
import { openStore } from "./open.ts";
import { postgres } from "./testing/engines.ts";

const PASSWORD = "correct horse";
const PAGE = 4096;
/** More of them, or one again: BLINDRELAY_TEST_SEEDS=FIRST-LAST. */
const [FIRST = 1, LAST = 12] = (process.env.BLINDRELAY_TEST_SEEDS ?? "1-12").split("-").map(Number);
const SEEDS = Array.from({ length: LAST - FIRST + 1 }, (_, i) => FIRST + i);

let folder: string;
let token: string;
const agents: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-damaged-"));
  const data = join(folder, "whole");
  await initStore({ data, username: "ada", password: PASSWORD, totp: false });
  const { server } = await start(data);
  const login = { username: "ada", password: PASSWORD };
  token = (await callRest(server.url, "POST", "/auth/login", null, login)).body.user.api_token;
  const add = async (index: number) => {
    const agent_id = `agent-${index}`;
    const metadata = { padding: "x".repeat((index * 37) % 3000), index };
    await callRest(server.url, "POST", "/agents", token, { name: "pump", agent_id, metadata });
    agents.push(agent_id);
  };
  for (let i = 0; i < 150; i += 1) await add(i);
  await server.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

const start = async (data: string): Promise<{ server: RunningServer; lines: string[] }> => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  const server = await startServer({ data, port: 0, metricsPort: 0 }, { log });
  return { server, lines };
};

/** A copy of the whole one, in one file. */
const copy = (): string => {
  const data = join(folder, randomUUID());
  cpSync(join(folder, "whole"), data, { recursive: true });
  const database = new DatabaseSync(storePath(data));
  database.exec("pragma wal_checkpoint(truncate)");
  database.close();
  return data;
};

/** mulberry32. */
const drawing = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
};

type Draw = ReturnType<typeof drawing>;

const flip = (bytes: Buffer, draw: Draw, most: number): Buffer => {
  for (let left = 1 + draw(most); left > 0; left -= 1) {
    const at = draw(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << draw(8));
  }
  return bytes;
};

/** Each breaks the file in place, as a disk does. */
const DAMAGES: { readonly [name: string]: (bytes: Buffer, draw: Draw) => Buffer } = {
  "zeroed pages": (bytes, draw) => {
    for (let left = 1 + draw(4); left > 0; left -= 1) {
      const at = draw(bytes.length / PAGE) * PAGE;
      bytes.fill(0, at, at + PAGE);
    }
    return bytes;
  },
  "random pages": (bytes, draw) => {
    for (let left = 1 + draw(4); left > 0; left -= 1) {
      const at = draw(bytes.length / PAGE) * PAGE;
      for (let i = at; i < at + PAGE; i += 1) bytes[i] = draw(256);
    }
    return bytes;
  },
  "flipped bits": (bytes, draw) => flip(bytes, draw, 200),
  "a flipped bit or two": (bytes, draw) => flip(bytes, draw, 2),
  "swapped pages": (bytes, draw) => {
    const [a, b] = [draw(bytes.length / PAGE) * PAGE, draw(bytes.length / PAGE) * PAGE];
    const kept = Buffer.from(bytes.subarray(a, a + PAGE));
    bytes.copy(bytes, a, b, b + PAGE);
    kept.copy(bytes, b);
    return bytes;
  },
  "a lost end": (bytes, draw) => bytes.subarray(0, draw(bytes.length)),
};

const breakIt = (data: string, seed: number): void => {
  const draw = drawing(seed);
  const names = Object.keys(DAMAGES);
  const name = names[seed % names.length] as string;
  const path = storePath(data);
  const after = (DAMAGES[name] as (typeof DAMAGES)[string])(readFileSync(path), draw);
  // The same file, also for whoever has it open.
  writeFileSync(path, after, { flag: "r+" });
  truncateSync(path, after.length);
};

/** What peers do; the statuses of REST, and the codes of links that were refused. */
const use = async ({ url }: RunningServer): Promise<unknown[]> => {
  const outcomes: unknown[] = [];
  const rest = async (method: string, path: string, body?: object) => {
    const answer = await callRest(url, method, path, token, body);
    outcomes.push(answer.status);
    if (answer.status >= 500) outcomes.push(answer.body.code);
    return answer.body;
  };
  await rest("POST", "/auth/login", { username: "ada", password: PASSWORD });
  for (const path of ["/account", "/admin/users", "/admin/audit?limit=200", "/releases"]) {
    await rest("GET", path);
  }
  let cursor = "";
  do {
    const page = await rest("GET", `/agents?limit=50${cursor}`);
    cursor = page.next_cursor == null ? "" : `&cursor=${encodeURIComponent(page.next_cursor)}`;
  } while (cursor !== "" && outcomes.length < 50);
  for (const id of agents.filter((_, index) => index % 7 === 0)) await rest("GET", `/agents/${id}`);
  await rest("POST", "/agents", { name: "new" });
  await rest("PATCH", `/agents/${agents[1]}`, { name: "renamed" });
  const made = await rest("POST", `/agents/${agents[2]}/rotate-token`, {});
  await rest("DELETE", `/agents/${agents[3]}`);
  for (const auth of [
    { client_type: "client", api_token: token },
    { client_type: "firmware", agent_id: agents[2], api_token: made.api_token ?? token },
  ]) {
    const { answer } = await connectPeer(url, auth);
    outcomes.push(answer.code ?? "linked");
  }
  return outcomes;
};

const readiness = async ({ url }: RunningServer) => (await fetch(`${url}/health/ready`)).status;

/** Works, or is called damaged with a way back, and never anything between. */
const judge = async (server: RunningServer, lines: string[], data: string): Promise<void> => {
  await readiness(server);
  const outcomes = await use(server);
  const ready = await readiness(server);
  expect(outcomes, lines.join("")).not.toContain("INTERNAL");
  if (ready === 200) {
    expect(outcomes).not.toContain("UNAVAILABLE");
    return;
  }
  await expect.poll(() => lines.filter((line) => line.includes('"level":60'))).toHaveLength(1);
  expect(lines.join("")).toContain(`the store ${storePath(data)} is damaged`);
  expect(lines.join("")).toContain("restore the newest backup");
  expect(await (await fetch(server.metricsUrl)).text()).toContain("blindrelay_store_damaged 1");
};

/** Starts; null if it is refused as it should be. */
const startOrRefuse = async (data: string): Promise<Awaited<ReturnType<typeof start>> | null> => {
  try {
    return await start(data);
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    const { message, exitCode } = error as Failure;
    // Nothing tells a damaged print of the key from another key.
    if (/^this master key is not .* newest backup of the store$/.test(message)) return null;
    expect(message).toMatch(/is damaged: .*restore the newest backup/);
    expect(message).toContain(storePath(data));
    expect(exitCode).toBe(4);
    return null;
  }
};

test("a broken page that a start does not need is exit 4 all the same", async () => {
  const data = copy();
  const database = new DatabaseSync(storePath(data));
  const root = database.prepare("select rootpage as page from sqlite_schema where name = 'agents'");
  const { page } = root.get() as { page: number };
  database.close();
  const bytes = readFileSync(storePath(data));
  writeFileSync(storePath(data), bytes.fill(0, (page - 1) * PAGE, page * PAGE));
  expect(await startOrRefuse(data)).toBeNull();
});

test.each(SEEDS)("broken before a start, seed %i", async (seed) => {
  const data = copy();
  breakIt(data, seed);
  const running = await startOrRefuse(data);
  if (running === null) return;
  await judge(running.server, running.lines, data);
  await running.server.stop();
});

test.each(SEEDS)("broken under a running relay, seed %i", async (seed) => {
  const data = copy();
  const { server, lines } = await start(data);
  breakIt(data, seed);
  await judge(server, lines, data);
  await server.stop();
  const again = await startOrRefuse(data);
  if (again === null) return;
  await judge(again.server, again.lines, data);
  await again.server.stop();
});

/** What happens to the files of a relay that runs. */
const TAKEN: { readonly [what: string]: (data: string) => void } = {
  "a folder that is moved": (data) => renameSync(join(data, "store"), join(data, "moved")),
  "a folder that is emptied": (data) => {
    for (const name of readdirSync(join(data, "store"))) rmSync(join(data, "store", name));
  },
  "a backup in the place of the file": (data) => {
    copyFileSync(storePath(data), join(data, "backup"));
    renameSync(join(data, "backup"), storePath(data));
  },
  "a log that is removed": (data) => rmSync(`${storePath(data)}-wal`),
};

// WiseLibs/better-sqlite3#1237, NousResearch/hermes-agent#97329
test.each(Object.keys(TAKEN))(
  "%s: nothing is acknowledged that would be lost, and the relay is not ready",
  async (what) => {
    const data = copy();
    const { server, lines } = await start(data);
    const add = (agent_id: string) =>
      callRest(server.url, "POST", "/agents", token, { name: "pump", agent_id });
    expect((await add("kept")).status).toBe(201);
    TAKEN[what]?.(data);
    expect(await readiness(server)).toBe(503);
    for (let i = 0; i < 3; i += 1) {
      const { status, body } = await add(`lost-${i}`);
      expect([status, body.code]).toEqual([503, "UNAVAILABLE"]);
    }
    const fatal = () => lines.filter((line) => line.includes('"level":60'));
    await expect
      .poll(fatal)
      .toEqual([
        expect.stringMatching(/was moved, removed or replaced while the relay ran; stop the relay/),
      ]);
    await server.stop();
    if (!existsSync(join(data, "moved"))) return;
    renameSync(join(data, "moved"), join(data, "store"));
    const again = await start(data);
    const { status } = await callRest(again.server.url, "GET", "/agents/kept", token);
    expect([status, await readiness(again.server)]).toEqual([200, 200]);
    await again.server.stop();
  },
);

const shared = postgres();
test.skipIf(shared.skipped)(
  "what PostgreSQL calls damaged lasts, and nothing else does",
  async () => {
    const location = await shared.prepare();
    const store = await openStore(location, true);
    const raising = (code: string) =>
      `do $$ begin raise exception 'broken' using errcode = '${code}'; end $$`;
    const raise = (code: string) => sql.raw(raising(code)).execute(store.db);
    await expect(raise("53100")).rejects.toThrow("the store is unavailable: broken");
    expect([store.damage(), await store.isReady()]).toEqual([null, true]);
    await expect(raise("XX002")).rejects.toThrow(
      /^the PostgreSQL database is damaged: XX002: broken; repair/,
    );
    expect([store.damage()?.message, await store.isReady(), await store.isWritable()]).toEqual([
      expect.stringContaining("XX002"),
      false,
      false,
    ]);
    await store.close();
    const again = await openStore(location, false);
    expect(await again.isReady()).toBe(true);
    for (const code of ["XX001", "58030", "58P01"]) {
      await expect(again.write((tx) => sql.raw(raising(code)).execute(tx))).rejects.toThrow(code);
      expect(again.damage()?.message).toContain("XX001");
    }
    await again.close();
    await shared.remove();
  },
);
