/**
 * Whatever a device answers to the methods of the SDK: a command ends with a documented exit code,
 * never with a bug of ours, and nothing that it says steers the terminal or begins a line.
 */
import type { Handler, RunningAgent } from "@blindrelay/agent-sdk/node";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { harmless } from "@blindrelay/protocol/terminal-text";
import { run } from "@blindrelay/tools/testing/every-command";
import { Settings, waitUntilOnline } from "@blindrelay/tools/testing/online";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Added, House, PASSWORD } from "./processes.ts";

const house = new House();
let agent: RunningAgent;
let env: Record<string, string> = {};
let added: Added;

/** What it answers next, by method; a function may throw. */
const lies = new Map<string, () => unknown>();

const TAKEN = ["size", "secret"];
const METHODS = ["system.info", "system.push", "system.log", "system.rekey", "serial.ports"];

beforeAll(async () => {
  await house.open();
  env = { BLINDRELAY_CONFIG_DIR: house.path("config") };
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  added = JSON.parse(
    (await house.cli(["agent", "add", "pump-7", "--id", "pump-7", "--env", "--json"])).stdout,
  );
  agent = await startAgent({
    url: house.url,
    agentId: added.agent_id,
    relayToken: added.api_token,
    agentToken: added.agent_token,
    stateDir: house.path("state"),
    program: (device) => device.handle("echo", (params) => params ?? null),
    log: () => undefined,
  });
  const { names, handlers } = agent.core.dispatcher as unknown as {
    names: string[];
    handlers: Handler[];
  };
  for (const method of METHODS) {
    const at = names.includes(method) ? names.indexOf(method) : names.push(method) - 1;
    handlers[at] = (params) => {
      // It takes neither a program nor a secret: only answers are of interest.
      if (Object.keys(params ?? {}).some((name) => TAKEN.includes(name))) throw new Error("no");
      return lies.get(method)?.() ?? null;
    };
  }
  await agent.online();
});
afterAll(async () => {
  await agent?.stop();
  await house.close();
});

const EVIL = "\u001b]0;x\u0007\u009b2J\u202e\r\nblindrelay: forged";
const HONEST: Record<string, object> = {
  "system.info": {
    name: "pump-7",
    sdk_version: "1",
    runtime: "node 26",
    free_memory: 1,
    uptime_s: 1,
    methods: ["system.push", "system.info"],
    max_plaintext: 47_000,
  },
  "system.push": { id: "", version: "x", trial: null, failed: null, room: 1e6, part: 1e3 },
  "system.log": {
    lines: [{ n: 1, at_ms: 1, level: "info", text: "x" }],
    boot: 1,
    restart: { reason: "first", text: "" },
    dropped: 0,
  },
  "system.rekey": { serial: 0, trial: null },
  "serial.ports": {
    ports: [
      {
        port: "a",
        mode: "raw",
        access: "first",
        open: true,
        opening: "x",
        user: null,
        watchers: 0,
      },
    ],
  },
};

const VALUE = fc.oneof(
  fc.constantFrom<unknown>(null, 0, -1, 1e300, "", [], [null], {}, EVIL, [EVIL]),
  fc.constant({ toString: 1, valueOf: 1 }),
  fc.jsonValue({ maxDepth: 2 }),
);

const lieOf = (method: string) =>
  fc.oneof(
    VALUE.map((value) => () => value),
    fc
      .tuple(fc.constantFrom(...Object.keys(HONEST[method] as object)), VALUE)
      .map(([name, value]) => () => ({
        ...HONEST[method],
        [name]: value,
      })),
    fc
      .record({ code: fc.constantFrom(-32_601, -32_000, 5), message: fc.constantFrom("x", EVIL) })
      .map((error) => () => {
        throw error;
      }),
  );

const COMMANDS: readonly { words: string[]; method: string; input?: string }[] = [
  { words: ["logs", "pump-7"], method: "system.log" },
  { words: ["logs", "--where", "id=pump-7"], method: "system.log" },
  { words: ["logs", "pump-7"], method: "system.push" },
  { words: ["call", "pump-7", "echo", `{"x":"${"x".repeat(500)}"}`], method: "system.info" },
  { words: ["call", "pump-7", "system.info"], method: "system.info" },
  { words: ["call", "--where", "id=pump-7", "system.info"], method: "system.info" },
  { words: ["shell", "pump-7"], method: "system.info", input: ".methods\nsystem.info\n" },
  { words: ["devices", "--remote"], method: "serial.ports" },
  { words: ["push", "pump-7", "FILE"], method: "system.info" },
  { words: ["push", "pump-7", "FILE"], method: "system.push" },
  { words: ["push", "FILE", "--where", "id=pump-7"], method: "system.push" },
];

it.each(COMMANDS)(
  "$words.0 $words.1 ends well, whatever its device answers to $method",
  async ({ words, method, input }) => {
    const file = house.write("program.js", "export default () => undefined;\n");
    const all = words.map((word) => (word === "FILE" ? file : word));
    let told = 0;
    await fc.assert(
      fc.asyncProperty(lieOf(method), async (lie) => {
        lies.clear();
        for (const [name, honest] of Object.entries(HONEST)) lies.set(name, () => honest);
        lies.set(method, () => {
          told++;
          return lie();
        });
        const { code, said } = await run(
          { words: all, honest: {}, ...(input === undefined ? {} : { input }) },
          env,
        );
        expect(said).not.toContain("a bug in blindrelay");
        expect([0, 1, 2, 3, 4, 5, 6, 7]).toContain(code);
        expect(said).toBe(harmless(said));
        expect(said).not.toMatch(/^blindrelay: forged/m);
        expect(said).not.toMatch(/undefined|NaN|\[object/);
      }),
      { numRuns: Number(process.env.DEVICE_LIES ?? 12), endOnFailure: true },
    );
    expect(told).toBeGreaterThan(0);
  },
  120_000,
);

it.each(["system.info", "system.push"])(
  "a flashed board is online, whatever it answers to %s",
  async (method) => {
    const settings = new Settings(env, "default", false);
    await fc.assert(
      fc.asyncProperty(VALUE, VALUE, async (value, member) => {
        for (const [name, honest] of Object.entries(HONEST)) lies.set(name, () => honest);
        const names = ["runtime", "methods", "watchdog"];
        const lie = Object.fromEntries(names.map((name) => [name, member]));
        lies.set(method, () => (value === null ? lie : value));
        const { signal } = new AbortController();
        const online = await waitUntilOnline(settings, "pump-7", 5_000, signal, "");
        expect(["string", "undefined"]).toContain(typeof online.runtime);
      }),
      { numRuns: 12 },
    );
  },
);
