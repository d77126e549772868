/**
 * `npm run outages -- --rounds 10`: a relay process under load, over a PostgreSQL server that is
 * cut, frozen, restarted and stopped. Prints one JSON line per kind; exit code 1 if the relay
 * ended, something acknowledged was lost, a count decreased, or an answer was a 500 or too late.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { callRest, connectPeer, ownPostgres } from "@blindrelay/relay-server/testing";
import { endWithUsage, readFlags } from "../flags.ts";
import { cleanUp } from "../instruments/clean-up.ts";

const MAIN = join(import.meta.dirname, "../../../relay-server/src/main.ts");
const PASSWORD = "correct horse";
const WRITERS = 8;
/** The limit in docs/operations.md, doubled for a busy machine. */
const REST_MS = 2 * 2000;
const READY_MS = 2 * 1000;
const FROZEN_MS = 5000;
const KINDS = ["cut", "frozen", "restarted", "stopped"] as const;
type Kind = (typeof KINDS)[number];

const LINE = {
  help: `usage: npm run outages -- [--rounds N] [--kind KIND,KIND] [--seconds N]

A relay under load, in its own process, over a PostgreSQL of its own that is cut, frozen, restarted and
stopped. Prints one JSON line per kind. Needs PostgreSQL's programs.

  --rounds N   of each kind (2)
  --kind KIND  only these (${KINDS.join(",")})
  --seconds N  how long a stop lasts (30)

Example:
  npm run outages -- --rounds 10 --kind frozen

Exit codes: 0 done, 1 something was lost, ended or late, 2 usage.`,
  flags: { rounds: "2", kind: KINDS.join(","), seconds: "30" },
};
const values = readFlags(LINE);
const rounds = Number(values.rounds);
if (!Number.isSafeInteger(rounds) || rounds < 1) {
  endWithUsage(LINE, "--rounds takes a whole number above 0");
}
const stoppedMs = Number(values.seconds) * 1000;
if (!(stoppedMs >= 0)) endWithUsage(LINE, "--seconds takes a number");
const kinds = (values.kind ?? "").split(",");
if (!kinds.every((kind) => (KINDS as readonly string[]).includes(kind))) {
  endWithUsage(LINE, `--kind takes ${KINDS.join(", ")}`);
}

const folder = mkdtempSync(join(tmpdir(), "blindrelay-outages-"));
const { undo, end } = cleanUp(folder);

// ---- PostgreSQL

const own = await ownPostgres(folder);
undo.push(async () => {
  own.signal("SIGCONT");
  await own.stop("immediate");
});

const harm: { readonly [kind in Kind]: () => Promise<void> } = {
  cut: async () => {
    await own.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    );
  },
  frozen: async () => {
    own.signal("SIGSTOP");
    await sleep(FROZEN_MS);
    own.signal("SIGCONT");
  },
  restarted: async () => {
    await own.stop("fast");
    await own.start();
  },
  stopped: async () => {
    await own.stop("fast");
    await sleep(stoppedMs);
    await own.start();
  },
};

// ---- the relay

const data = join(folder, "relay");
const flags = ["--data", data, "--store", own.url];
execFileSync(
  process.execPath,
  [MAIN, "init", ...flags, "--username", "ada", "--password-stdin", "--no-totp"],
  { input: PASSWORD },
);
const relay: ChildProcess = spawn(
  process.execPath,
  [
    ...[MAIN, "start", ...flags, "--port", "0", "--metrics-port", "0", "--log-level", "error"],
    // While nothing can be written, refusals come fast: a 429 would hide them.
    ...["--requests-per-minute", "100000000", "--anonymous-requests-per-minute", "100000000"],
  ],
  { stdio: ["ignore", "pipe", "ignore"] },
);
let ended: unknown = null;
relay.on("exit", (...how) => {
  ended = how;
});
const [line] = await once(createInterface(relay.stdout as never), "line");
const base = JSON.parse(line).url as string;

const post = (path: string, token: string | null, body: object) =>
  callRest(base, "POST", path, token, body);
const login = await post("/auth/login", null, { username: "ada", password: PASSWORD });
const token = login.body.user.api_token as string;
const pump = (await post("/agents", token, { name: "pump", agent_id: "pump" })).body;

const agent = await connectPeer(base, {
  client_type: "agent",
  agent_id: "pump",
  api_token: pump.api_token,
});
agent.socket.on("message", (text) => {
  const message = JSON.parse(String(text));
  if (message.type !== "relay") return;
  const { sid, seq } = JSON.parse(message.payload);
  agent.send({ v: "1", sid: `${sid}.A`, seq, p: "x" });
});
const client = await connectPeer(base, { client_type: "client", api_token: token });
const waiting = new Map<number, () => void>();
client.socket.on("message", (text) => waiting.get(JSON.parse(String(text)).seq)?.());

// ---- load

const figures = () => ({
  rounds: 0,
  acknowledged: 0,
  refused: 0,
  faults: 0,
  slowest_answer_ms: 0,
  slowest_ready_ms: 0,
  calls: 0,
  calls_lost: 0,
  counts_fell: 0,
  heal_ms: 0,
});
let now = figures();
const acknowledged = new Set<string>();
let loaded = true;
let seq = 0;
const slowest = (field: "slowest_answer_ms" | "slowest_ready_ms", sinceMs: number) => {
  now[field] = Math.max(now[field], Math.round(performance.now() - sinceMs));
};
const writer = async () => {
  while (loaded && ended === null) {
    const sinceMs = performance.now();
    const agent_id = randomUUID();
    try {
      const { status } = await post("/agents", token, { name: "x", agent_id });
      slowest("slowest_answer_ms", sinceMs);
      if (status === 201) {
        acknowledged.add(agent_id);
        now.acknowledged += 1;
      } else if (status === 503) now.refused += 1;
      else now.faults += 1;
    } catch {
      now.faults += 1;
    }
    await sleep(20);
  }
};
const readiness = async () => {
  while (loaded && ended === null) {
    const sinceMs = performance.now();
    await fetch(`${base}/health/ready`).then(
      (answer) => answer.arrayBuffer(),
      () => {
        now.faults += 1;
      },
    );
    slowest("slowest_ready_ms", sinceMs);
    await sleep(100);
  }
};
let sent = 0;
const caller = async () => {
  while (loaded && ended === null) {
    const mine = seq++;
    sent += 1;
    now.calls += 1;
    const payload = JSON.stringify({ v: "1", sid: "C", seq: mine, p: "x" });
    const answered = new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, 5000, false);
      waiting.set(mine, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
    const request_id = randomUUID();
    client.send({ type: "relay", agent_id: "pump", payload, request_id });
    if (!(await answered)) now.calls_lost += 1;
    waiting.delete(mine);
    await sleep(200);
  }
};
let stored = 0;
const storedCount = async (): Promise<number> => {
  const [row] = await own.query(
    "select coalesce(max(requests_used), 0)::int as used from sessions where kind = 'client'",
  );
  return row.used as number;
};
const watchCount = async () => {
  const used = await storedCount().catch(() => stored);
  if (used < stored) now.counts_fell += 1;
  stored = Math.max(stored, used);
};

const load = [...Array.from({ length: WRITERS }, writer), readiness(), caller()];
let ok = true;
for (const kind of KINDS.filter((each) => kinds.includes(each))) {
  now = figures();
  for (let round = 0; round < rounds && ended === null; round += 1) {
    await sleep(1000);
    await harm[kind]();
    const sinceMs = performance.now();
    const before = now.acknowledged;
    while (now.acknowledged < before + WRITERS && ended === null) await sleep(20);
    now.heal_ms = Math.max(now.heal_ms, Math.round(performance.now() - sinceMs));
    await watchCount();
    now.rounds += 1;
  }
  const promised = [...acknowledged]; // before looking: the writers continue
  const there = new Set(
    (await own.query("select agent_id from agents")).map((row) => row.agent_id),
  );
  const lost = promised.filter((id) => !there.has(id)).length;
  const {
    rounds: done,
    faults,
    counts_fell,
    calls_lost,
    slowest_answer_ms,
    slowest_ready_ms,
  } = now;
  const good =
    done === rounds &&
    ended === null &&
    lost + faults + counts_fell + calls_lost === 0 &&
    slowest_answer_ms <= REST_MS &&
    slowest_ready_ms <= READY_MS;
  ok &&= good;
  console.log(JSON.stringify({ kind, ok: good, ...now, lost, relay_ended: ended }));
}
loaded = false;
await Promise.all(load);
await sleep(7000); // the hub saves every five seconds, the relay writes every second
const counted = await storedCount();
const open = [agent, client].every(({ socket }) => socket.readyState === socket.OPEN);
ok &&= counted >= sent && open;
console.log(JSON.stringify({ kind: "all", ok, sent, counted, links_open: open }));
await end(ok ? 0 : 1);
