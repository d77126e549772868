/** `blindrelay logs` with a real relay and a device program in a process that may be killed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("say", ({ text }) => { agent.log("warn", text); return null; });
  agent.handle("fail", () => { agent.log("error", "the pump is stuck"); return null; });
};
`;

const house = new House();
let program = "";
beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  await house.cli(["agent", "add", "Lamp", "--id", "lamp-1"]);
  program = house.write("pump.mjs", PROGRAM);
});
afterAll(() => house.close());

const startAgent = async () => {
  const running = house.start(["agent", "run", program, "--agent", "pump-7", "--json"]);
  await running.json();
  return running;
};

it("of a device that is away is waited for, and a stack is one line", async () => {
  const follower = house.start(["logs", "lamp-1", "--follow"]);
  await follower.complains("it keeps trying");
  const throws = `export default (agent) => {
    agent.handle("throw", () => { setTimeout(() => { throw new Error("no lamp"); }); return null; });
  };`;
  const file = house.write("lamp.mjs", throws);
  await house.start(["agent", "run", file, "--agent", "lamp-1", "--json"]).json();
  expect(await follower.line()).toMatch(/^start 2; nothing is known/);
  await house.cli(["call", "lamp-1", "throw"]);
  expect(await follower.line()).toMatch(/ error .*: Error: no lamp at .*lamp\.mjs:2:\d+\)$/);
  expect((await follower.stop("SIGINT")).code).toBe(0);
});

it("is followed over a crash, and says why the device restarted", async () => {
  const first = await startAgent();
  const say = (text: string) => house.cli(["call", "pump-7", "say", JSON.stringify({ text })]);
  // Provisioning wrote count 1; each start raises it.
  await say("early");
  const follower = house.start(["logs", "pump-7", "--follow", "--json"]);
  expect(await follower.json()).toMatchObject({
    kind: "start",
    agent_id: "pump-7",
    boot: 2,
    restart: { reason: "first", text: "" },
  });
  expect(await follower.json()).toMatchObject({
    kind: "line",
    n: 1,
    level: "warn",
    text: "early",
    at: expect.stringMatching(/^\d{4}-/),
  });
  await say("live");
  expect(await follower.json()).toMatchObject({ kind: "line", n: 2, text: "live" });
  await house.cli(["call", "pump-7", "fail"]);
  expect(await follower.json()).toMatchObject({ kind: "line", n: 3, level: "error" });

  await first.stop("SIGKILL");
  const second = await startAgent();
  expect(await follower.json()).toMatchObject({
    kind: "start",
    boot: 3,
    restart: { reason: "reset", text: "the pump is stuck" },
  });
  await say("again");
  expect(await follower.json()).toMatchObject({ kind: "line", n: 1, text: "again" });
  const ended = await follower.stop("SIGINT");
  expect(ended.code).toBe(0);

  expect((await second.stop()).code).toBe(0);
  await startAgent();
  const { stdout } = await house.cli(["logs", "pump-7"]);
  expect(stdout).toMatch(/^start 4; the last restart: it was stopped$/m);
});
