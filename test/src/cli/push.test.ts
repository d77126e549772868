/** Programs pushed over the relay to agents on Node, by the command. */
import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "@blindrelay/agent-sdk";
import { type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { asciiBytes, crc32 } from "@blindrelay/protocol/crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD, type Running } from "./processes.ts";

const house = new House();
const which = (n: number, body = ""): string =>
  `export default (agent) => { ${body} agent.handle("which", () => ({ n: ${n} })); };\n`;
const OWN = house.write("own.mjs", which(0));
/** Does not return, as `for (;;);` does not, and leaves the processor to the other tests. */
const STUCK = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
});
afterAll(() => house.close());

const push = (id: string, file: string, more: string[] = []) =>
  house.cli(["push", id, file, "--timeout", "300", ...more]);
const calls = async (id: string): Promise<string> => {
  const { stdout } = await house.cli(["call", id, "which"]);
  return stdout.trim();
};
const runs = (id: string, n: number) =>
  expect.poll(() => calls(id), { timeout: 60_000, interval: 300 }).toBe(`{"n":${n}}`);

describe("agent run --allow-push", () => {
  let agent: Running;
  const env = { NODE_OPTIONS: "--max-old-space-size=128", BLINDRELAY_PASSPHRASE: "for another" };
  const secrets = `agent.handle("secrets", () =>
    Object.keys(process.env).filter((name) => /^BLINDRELAY.*(TOKEN|PASSPHRASE|PUSH_KEY)$/.test(name)));`;
  const start = (more: string[] = ["--allow-push"]) =>
    house.start(["agent", "run", OWN, "--agent", "pump", "--json", ...more], env);

  it("runs a kept program, even after a restart, and returns from one that fails", async () => {
    await house.cli(["agent", "add", "Pump", "--id", "pump"]);
    agent = start();
    await agent.json();
    const first = house.write("first.ts", which(1, `const a: number[] = [...[1]]; ${secrets}`));
    const pushed = await push("pump", first, ["--firmware-version", "2.0.0", "--json"]);
    expect([pushed.code, pushed.stderr]).toEqual([0, ""]);
    expect(await calls("pump")).toBe('{"n":1}');
    expect((await house.cli(["agent", "list"])).stdout).toMatch(/pump .* 2\.0\.0 /);

    // The power is cut, so no close frame is sent. The first program is not needed any more.
    await agent.stop("SIGKILL");
    rmSync(OWN);
    agent = start();
    await agent.json();
    expect(await calls("pump")).toBe('{"n":1}');
    expect((await house.cli(["call", "pump", "secrets"])).stdout.trim()).toBe("[]");
    house.write("own.mjs", which(0));

    for (const [body, reason] of [
      ['throw new Error("no sensor");', "no sensor"],
      ['await import("./missing.mjs");', "Cannot find module"],
      ["process.exit(3);", "exit code 3"],
      // In few steps: it must be over before it counts as stuck.
      ["const all = []; for (;;) all.push(Array(1e6).fill(1));", "out of memory"],
      [STUCK, "it did not respond for 25 s"],
    ] as const) {
      const program = house.write("fails.mjs", which(2, body).replace("(agent)", "async (agent)"));
      const failed = await push("pump", program);
      expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(reason)]);
      expect(await calls("pump")).toBe('{"n":1}');
    }
    const wrong = await push("pump", house.write("wrong.mjs", "export default ("));
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("wrong.mjs:1:")]);
  });

  it("restarts a kept program that hangs later", async () => {
    const hangs = `agent.handle("hang", () => { ${STUCK} });`;
    expect((await push("pump", house.write("hangs.mjs", which(3, hangs)))).code).toBe(0);
    expect((await house.cli(["call", "pump", "hang", "--timeout", "5"])).code).toBe(6);
    await runs("pump", 3);
  });

  it("ends with its agent's process on SIGTERM, and when only a person can help", async () => {
    const ended = await agent.stop();
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain("running the pushed program, not");
    const own = start([]);
    await own.json();
    expect(await calls("pump")).toBe('{"n":0}');
    const refused = await push("pump", OWN);
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("--allow-push")]);
    const locked = await start().ended;
    expect([locked.code, locked.stderr]).toEqual([7, expect.stringContaining("another agent")]);
    await own.stop();
    const broken = house.write("broken.mjs", "throw new Error('no pump');");
    await house.cli(["agent", "add", "Lamp", "--id", "lamp"]);
    const failed = await house.cli(["agent", "run", broken, "--agent", "lamp", "--allow-push"]);
    expect([failed.code, failed.stderr]).toEqual([2, expect.stringContaining("no pump")]);
    const withTrial = ["--allow-push", "--state-dir", folderWithTrial()];
    const foreign = await house.cli(["agent", "run", broken, "--agent", "lamp", ...withTrial]);
    expect([foreign.code, foreign.stderr]).toEqual([7, expect.stringContaining("boot count")]);
  });

  it("takes with a push key only what is proven, and stays guarded without the flag", async () => {
    await house.cli(["agent", "add", "Valve", "--id", "valve"]);
    const key = house.path("valves.key");
    const serve = (more: string[]) =>
      house.start(
        ["agent", "run", OWN, "--agent", "valve", "--json", "--allow-push", ...more],
        env,
      );
    const first = serve(["--push-key", key]);
    await first.json();
    const program = house.write("valve.mjs", which(5, secrets));
    const proven = await push("valve", program, ["--push-key", key]);
    expect([proven.code, proven.stderr]).toEqual([0, ""]);
    // Its process does not show the key to what the program starts.
    expect((await house.cli(["call", "valve", "secrets"])).stdout.trim()).toBe("[]");
    const { stderr } = await first.stop();
    expect(stderr).toContain("made the push key");

    const other = house.write("other.key", makeToken("push", new Uint8Array(32).fill(9)));
    const refused = await serve(["--push-key", other]).ended;
    expect([refused.code, refused.stderr]).toEqual([
      7,
      expect.stringContaining("to give it another one, remove push.key there"),
    ]);
    const again = serve([]);
    await again.json();
    for (const [more, reason] of [
      [[], "it wants a push key: push --push-key FILE"],
      [["--push-key", other], "--push-key names another key's file"],
    ] as const) {
      const ended = await push("valve", OWN, [...more]);
      expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining(reason)]);
    }
    expect(await calls("valve")).toBe('{"n":5}');
    const all = await house.cli(["push", OWN, "--all", "--push-key", key, "--json"]);
    expect(JSON.parse(all.stdout)).toMatchObject({ kept: ["valve"], failed: [] });
    expect(await calls("valve")).toBe('{"n":0}');
    await again.stop();
  });

  it("exits with 4 if no agent is online", async () => {
    const { code, stderr } = await house.cli(["push", OWN, "--all"]);
    expect([code, stderr]).toEqual([4, expect.stringContaining("no agent to push to is online")]);
  });
});

describe("a fleet of twenty", () => {
  const ids = Array.from({ length: 20 }, (_, i) => `fleet-${String(i).padStart(2, "0")}`);
  const running = new Map<string, RunningAgent>();
  let loads = 0;

  /** Restarts in this process what `agent run` starts in a process of its own. */
  const boot = async (id: string, takesPushes: boolean): Promise<void> => {
    const added = await house.cli(["agent", "add", id, "--id", id, "--json", "--env"]);
    const { api_token: relayToken, agent_token: agentToken } = JSON.parse(added.stdout);
    const load = (path: string) =>
      import(/* @vite-ignore */ `${pathToFileURL(path)}?${++loads}`).then(
        (module) => module.default,
      );
    const start = async (): Promise<void> => {
      await running.get(id)?.stop();
      const restart = (): void => void start().catch(() => undefined);
      const options = {
        ...{ url: house.url, agentId: id, relayToken, agentToken, stateDir: house.path(id) },
        program: (given: Agent) => given.handle("which", () => ({ n: 0 })),
        log: () => undefined,
      };
      const pushes = takesPushes ? { pushes: { load, restart } } : {};
      running.set(id, await startAgent({ ...options, ...pushes }));
    };
    await start();
    await running.get(id)?.online();
  };

  afterAll(() => Promise.all([...running.values()].map((agent) => agent.stop())));

  const pushAll = async (file: string) => {
    const args = ["push", file, "--all", "--staged", "25%", "--timeout", "300", "--json"].concat(
      "--firmware-version",
      "3.0.0",
    );
    const { code, stdout, stderr } = await house.cli(args);
    return { code, stderr, ...JSON.parse(stdout) };
  };
  const versions = async (): Promise<unknown[]> => {
    const { items } = JSON.parse((await house.cli(["agent", "list", "--json"])).stdout);
    const version = (id: string) =>
      items.find((item: { agent_id: string }) => item.agent_id === id).firmware_version;
    return ids.map(version);
  };

  it("is not pushed to further if trials of a stage fail; agents that accept no programs are named", async () => {
    // In the first stage (25 %), two accept no programs; in the second (40 %), two fail.
    for (const [i, id] of ids.entries()) await boot(id, i !== 1 && i !== 3);
    const bad = which(1, 'if (/-0[67]$/.test(agent.id)) throw new Error("no valve here");');
    const first = await pushAll(house.write("bad.mjs", bad));
    expect(first.code).toBe(1);
    expect(namesOf(first.skipped)).toEqual(["fleet-01", "fleet-03"]);
    expect(first.stderr).toContain(
      "fleet-03 does not accept programs over the relay: it was started",
    );
    expect(namesOf(first.failed)).toEqual(["fleet-06", "fleet-07"]);
    expect(first.failed[0].reason).toContain("no valve here");
    expect(first.kept.sort()).toEqual([0, 2, 4, 5].map((i) => ids[i]));
    expect(first.untouched).toEqual(ids.slice(8));
    expect(await calls("fleet-06")).toBe('{"n":0}');
    expect(await calls("fleet-05")).toBe('{"n":1}');

    const second = await pushAll(house.write("good.mjs", which(2)));
    expect([second.code, second.kept.length, second.untouched]).toEqual([0, 18, []]);
    expect(await versions()).toEqual(ids.map((_, i) => (i === 1 || i === 3 ? null : "3.0.0")));
    expect(await calls("fleet-19")).toBe('{"n":2}');
  });

  it("is told about after a signal: pushes in progress are completed, and the command goes on", async () => {
    const args = ["push", house.write("third.mjs", which(3)), "--all", "--staged", "25%", "--json"];
    const pushing = house.start(args);
    await expect.poll(() => calls("fleet-00"), { timeout: 60_000 }).toBe('{"n":3}');
    const { code, stdout, stderr } = await pushing.stop("SIGINT");
    const { kept, untouched } = JSON.parse(stdout);
    expect([code, stderr]).toEqual([130, expect.stringContaining("the same command goes on")]);
    expect([...kept.sort(), ...untouched]).toEqual(ids.filter((_, i) => i !== 1 && i !== 3));
    expect(JSON.parse((await house.cli(args)).stdout)).toMatchObject({
      kept: expect.arrayContaining(untouched),
      unchanged: expect.arrayContaining(kept),
    });
  });
});

/** Without a boot count, so that the trial stored there is never started. */
const folderWithTrial = (): string => {
  const trial = { id: "0123456789abcdef", version: "2.0.0", seconds: 60, started: false };
  const record = JSON.stringify({ n: 1, slot: 0, id: "", version: "", trial, failed: null });
  mkdirSync(house.path("stored"));
  return dirname(house.write("stored/push.1", `${crc32(asciiBytes(record)) >>> 0} ${record}`));
};

const namesOf = (list: { readonly agent_id: string }[]): string[] =>
  list.map(({ agent_id }) => agent_id).sort();
