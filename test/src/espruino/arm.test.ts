/**
 * A board in QEMU as its owner uses it: provisioned, flashed, called and pushed to by the commands,
 * over its console and a bridge at its UART. By hand, everything that is documented:
 *
 * ARM_TIMES=50 PUSH_CUTS=200 PUSH_FAILURES=10 npx vitest run test/src/espruino/arm.test.ts
 */

import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Agent, type Client, connect } from "@blindrelay/client-sdk/node";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";
import { ArmBoard, armImage, whyNoArm } from "./arm-board.ts";
import { FAILURES } from "./push-failures.ts";
import { CALLS } from "./thermostat-board.ts";

const CLIENTS = Number(process.env.ARM_TIMES ?? 4);
const CALLS_EACH = 20;
const ROUNDS = Math.ceil(CLIENTS / 10);
const CUTS = Number(process.env.PUSH_CUTS ?? 2);
const TIMES = Number(process.env.PUSH_FAILURES ?? 1);
const TEXTS = 56;
/** Fewer have no room for pushes. */
const ROOMY = 4000;
const PATIENT = { timeoutMs: 60_000, idempotent: true, waitForAgent: true };
const TRIAL_S = 60;
/** About as long as a push takes. */
const PUSH_MS = 14_000;
/** For the transfer before it, and the restarts. */
const AROUND_S = 40;

describe.skipIf(armImage === null)(`a board in QEMU${whyNoArm}`, { timeout: 14_400_000 }, () => {
  const house = new House();
  const board = new ArmBoard(armImage as string);
  let variables = 0;
  let client: Client;
  let open: () => Promise<Client>;
  let agentOf: (client: Client) => Agent;
  let number = 0;

  const say = (text: string): void => {
    process.stderr.write(`${text}\n`);
  };
  const ok = async (args: string[], input?: string): Promise<string> => {
    const { code, stdout, stderr } = await house.cli(args, {}, input);
    expect([code, args[0], stderr]).toEqual([0, args[0], expect.anything()]);
    return stdout;
  };
  const write = (end: string): string => {
    number++;
    const handlers = `agent.handle("which", () => ({ n: ${number} }));`;
    const code = `export default (agent) => {\n${handlers}\n${end}\n};\n`;
    return house.write(`${number}.js`, code);
  };
  const push = (file: string) =>
    house.cli(["push", "arm", file, "--wait", "--timeout", `${TRIAL_S}`]);
  const status = () => agentOf(client).call<{ trial: string | null }>("system.push", {}, PATIENT);
  const which = (): Promise<{ n: number }> => agentOf(client).call("which", {}, PATIENT);
  const needsRoom = (test: TestContext): void =>
    test.skip(variables < ROOMY, `${variables} variables have no room for pushes`);

  beforeAll(async () => {
    await house.open();
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    await ok(login, `${PASSWORD}\n`);
    await board.powerOn();
    variables = await board.variables();
    const way = ["--serial", "Serial2", ...(variables < ROOMY ? ["--no-push"] : [])];
    await ok(["provision", board.console, "--id", "arm", ...way]);
    const bridge = house.start(["bridge", board.uart, "--mode", "sealed", "--json"]);
    expect(await bridge.json()).toMatchObject({ state: "open" });
    const program = fileURLToPath(new URL("thermostat.ts", import.meta.url));
    say(await ok(["flash", board.console, "--program", program]));
    const accountToken = (await ok(["auth", "token"])).trim();
    const exported = JSON.parse(await ok(["agent", "export", "arm", "--json"]));
    open = () => connect({ url: house.url, accountToken });
    client = await open();
    agentOf = (of) => of.agent("arm", exported.agent_token, { version: "2" });
  }, 300_000);
  afterAll(async () => {
    client?.close();
    await house.close();
    await board.end();
  });

  it("returns every text as it was sent, in names of members, too", async () => {
    const texts = fc.sample(fc.string({ unit: "binary", minLength: 1, maxLength: 24 }), {
      numRuns: TEXTS,
      seed: 31,
    });
    for (const text of texts) {
      const sent = { [`k${text}`]: [text] };
      expect(await agentOf(client).call("echo", sent, PATIENT)).toEqual(sent);
    }
  });

  it("answers the calls of many clients, two at once, and goes on after five", async () => {
    const since = performance.now();
    const failed: string[] = [];
    let next = 0;
    const serve = async (): Promise<void> => {
      while (next < CLIENTS) {
        next++;
        const one = await open();
        for (let i = 0; i < CALLS_EACH; i++) {
          const [method, params] = CALLS[i % CALLS.length] as (typeof CALLS)[number];
          await agentOf(one)
            .call(method, params, { timeoutMs: 60_000 })
            .catch((error: Error) => failed.push(`${method}: ${error.message}`));
        }
        one.close();
      }
    };
    await Promise.all([serve(), serve()]);
    const seconds = Math.round((performance.now() - since) / 1000);
    say(`${CLIENTS * CALLS_EACH} calls of ${CLIENTS} clients, two at once: ${seconds} s`);
    expect(failed).toEqual([]);
    let answered = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const ended = await Promise.allSettled(
        CALLS.slice(0, 5).map(async ([method, params]) => {
          const one = await open();
          await agentOf(one)
            .call(method, params, PATIENT)
            .finally(() => one.close());
        }),
      );
      answered += ended.filter(({ status }) => status === "fulfilled").length;
      // A line that lost bytes is given up after 75 s of silence.
      const back = { ...PATIENT, timeoutMs: 150_000 };
      expect(await agentOf(client).call("state", {}, back)).toMatchObject({ target: 20.25 });
    }
    say(`five at once, ${ROUNDS} times: ${answered} answered`);
    // Which fits only a larger board (docs/espruino.md).
    if (variables >= ROOMY) expect(answered).toBe(5 * ROUNDS);
  });

  it("has the old or the new program after a power cut in a push", async (test) => {
    needsRoom(test);
    await ok(["push", "arm", write(""), "--timeout", "60"]);
    let kept = number;
    const ends = { old: 0, new: 0 };
    for (let cut = 1; cut <= CUTS; cut++) {
      const pushing = push(write(`agent.text = "${"x".repeat(2000)}";`));
      await wait(Math.random() * PUSH_MS);
      await board.cutPower();
      await board.powerOn();
      expect([kept, number]).toContain((await which()).n);
      const { code, stderr } = await pushing;
      while ((await status()).trial !== null) await wait(1000);
      const { n } = await which();
      expect(n, stderr).toBe(code === 0 ? number : kept);
      say(`cut ${cut}: ${n === kept ? "old" : "new"}`);
      if (n === kept) ends.old++;
      else ends.new++;
      kept = n;
    }
    say(`${CUTS} power cuts: ${ends.new} new, ${ends.old} old`);
    await ok(["push", "arm", write(""), "--timeout", "60"]);
    expect(await which()).toEqual({ n: number });
  });

  it.for(FAILURES)("loses a pushed program that %s", async ([what, end, reason], test) => {
    needsRoom(test);
    await ok(["push", "arm", write(""), "--timeout", "60"]);
    const kept = number;
    for (let time = 1; time <= TIMES; time++) {
      const since = performance.now();
      const { code, stderr } = await push(write(end));
      const seconds = (performance.now() - since) / 1000;
      say(`${what}, ${time}: ${seconds.toFixed(1)} s; ${stderr.trim()}`);
      expect([code, stderr]).toEqual([1, expect.stringContaining("returned to")]);
      expect(stderr).toMatch(reason);
      expect(await which()).toEqual({ n: kept });
      expect(seconds).toBeLessThan(TRIAL_S + AROUND_S);
    }
  });
});
