/** Each program of client-sdk/examples prints what its lines `// →` say, on a real relay. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { type Program, type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PASSWORD, Relay } from "../specification/relay.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../client-sdk/examples");
const programs = readdirSync(EXAMPLES).filter((name) => name.endsWith(".mjs"));

/** The valve of README.md. */
const valve: Program = (agent) => {
  let percent = 0;
  agent.handle("valve.open", (params: { percent?: number }) => {
    const { percent: wanted = -1 } = params ?? {};
    if (!(wanted >= 0 && wanted <= 100)) throw new Error("percent: 0 to 100");
    percent = wanted;
    agent.emit("valve.moved", { percent });
    return { percent };
  });
  agent.handle("valve.state", () => ({ percent }));
  agent.handle("valve.flush", () => new Promise(() => undefined));
};

let relay: Relay;
let environment: NodeJS.ProcessEnv;
const tokens = new Map<string, { relayToken: string; agentToken: string }>();
const running: RunningAgent[] = [];

const start = async (agentId: string): Promise<void> => {
  const { relayToken = "", agentToken = "" } = tokens.get(agentId) ?? {};
  const stateDir = join(relay.data, agentId);
  const made = { url: relay.url, agentId, relayToken, agentToken, stateDir };
  const agent = await startAgent({ ...made, program: valve, log: () => undefined });
  running.push(agent);
  await agent.online();
};

/** Runs Node on it; `first`: called at its first output. */
const run = async (args: readonly string[], first: () => void = () => {}) => {
  const child = spawn(process.execPath, args, { cwd: EXAMPLES, env: environment });
  const ended = once(child, "close");
  child.stdout.once("data", first);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  return { code, stdout, stderr };
};

beforeAll(async () => {
  relay = await new Relay().start();
  const { json } = await relay.api("POST", "/auth/login", {
    body: { username: "ada", password: PASSWORD },
  });
  const token = (json as { user: { api_token: string } }).user.api_token;
  for (const agentId of ["valve-1", "sleeper"]) {
    const body = { agent_id: agentId, name: agentId };
    const made = await relay.api("POST", "/agents", { token, body });
    const { api_token: relayToken } = made.json as { api_token: string };
    tokens.set(agentId, { relayToken, agentToken: makeToken("e2e", randomBytes(32)) });
  }
  environment = {
    ...process.env,
    BLINDRELAY_URL: relay.url,
    BLINDRELAY_ACCOUNT_TOKEN: token,
    BLINDRELAY_AGENT_ID: "valve-1",
    BLINDRELAY_AGENT_TOKEN: tokens.get("valve-1")?.agentToken,
    BLINDRELAY_SLEEPER_TOKEN: tokens.get("sleeper")?.agentToken,
    BLINDRELAY_USERNAME: "ada",
    BLINDRELAY_PASSWORD: PASSWORD,
  };
  await start("valve-1");
});

afterAll(async () => {
  await Promise.all(running.map((agent) => agent.stop()));
  await relay.close();
});

it("there are at least twelve, and the page lists them", () => {
  expect(programs.length).toBeGreaterThanOrEqual(12);
  const page = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  const listed = [...page.matchAll(/^\| \[(\S+\.mjs)\]/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual(programs.sort());
});

it("the program of README.md prints what its comments say", async () => {
  const readme = readFileSync(resolve(EXAMPLES, "../../README.md"), "utf8");
  const [, code = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(readme) ?? [];
  const secret = JSON.stringify(tokens.get("valve-1")?.agentToken);
  const given = `const password = ${JSON.stringify(PASSWORD)}, agentToken = ${secret};`;
  const typed = code
    .replace("http://127.0.0.1:8080", relay.url)
    .replaceAll('"pump-7"', '"valve-1"');
  const { code: exit, stdout, stderr } = await run(["--input-type=module", "-e", given + typed]);
  const said = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, line]) => line);
  expect({ exit, stderr, lines: stdout.trim().split("\n") }).toEqual({
    exit: 0,
    stderr: "",
    lines: said,
  });
  expect(said).toHaveLength(2);
});

// The one that wakes the sleeper comes last: others find it offline.
it.each(programs.sort((a, b) => Number(/^wait/.test(a)) - Number(/^wait/.test(b))))(
  "%s prints what it says",
  async (name) => {
    const path = join(EXAMPLES, name);
    const said = [...readFileSync(path, "utf8").matchAll(/^\/\/ → (.*)$/gm)];
    const first = name.startsWith("wait") ? () => void start("sleeper") : () => undefined;
    const { code, stdout, stderr } = await run([path], first);
    expect({ code, stderr, lines: stdout.trim().split("\n") }).toEqual({
      code: 0,
      stderr: "",
      lines: said.map(([, line]) => line),
    });
  },
);
