/** Terminals, pipes and containers that commands run in, as others met them. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { CLI, House, PASSWORD } from "../cli/processes.ts";

const house = new House();
beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, PASSWORD)).code).toBe(0);
  expect((await house.cli(["agent", "add", "Pump", "--id", "pump"])).code).toBe(0);
});
afterAll(() => house.close());

/** An agent with a program that logs to both outputs all the time, and counts that. */
const startLogging = async () => {
  const program = house.write(
    "logs.mjs",
    `export default (agent) => {
      let lines = 0;
      setInterval(() => { console.log("out"); console.error("err"); lines++; }, 5);
      agent.handle("lines", () => lines);
    };`,
  );
  const child = spawn(process.execPath, [CLI, "agent", "run", program, "--agent", "pump"], {
    env: { PATH: process.env.PATH ?? "", BLINDRELAY_CONFIG_DIR: house.path("config") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for await (const line of createInterface(child.stderr)) if (line.includes("is online")) break;
  const lines = async () => {
    const { stdout, stderr } = await house.cli(["call", "pump", "lines"]);
    return stdout === "" ? stderr : Number(stdout);
  };
  return { child, lines };
};

// PromptPartner/bexio-mcp-server#18, perseo22/pacmanager#12
it("an agent goes on when what reads its output has gone, and after a hang-up", async () => {
  const { child, lines } = await startLogging();
  child.stdout.destroy();
  child.stderr.destroy();
  child.kill("SIGHUP");
  const before = await lines();
  expect(before).toBeTypeOf("number");
  expect(await lines()).toBeGreaterThan(before as number);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

// spinje/pflow#589: `yes | …`, without line ends
it.each([["token"], ["call", "pump", "lines", "-"]])(
  "input without an end does not fill the memory: %s",
  async (...command) => {
    const { code, stderr } = await house.cli(command, {}, "y".repeat(17 * 1_048_576));
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/standard input has more than \d+ bytes/),
    ]);
  },
);

// ifreund/waylock#62
it("an empty password is not sent, where it would count as a wrong one", async () => {
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  const { code, stderr } = await house.cli(login, {}, "\n");
  expect([code, stderr]).toEqual([2, expect.stringContaining("no password; nothing was sent")]);
});

const CAN_UNSHARE = spawnSync("unshare", ["-pf", "true"]).status === 0;

// mrmn2/PdfDing#165
it.skipIf(!CAN_UNSHARE)(
  "SIGTERM ends a command that is the first process of a container, whatever it does",
  async () => {
    const call = [process.execPath, CLI, "call", "pump", "lines", "--wait", "--timeout", "600"];
    const container = spawn("unshare", ["-pf", "--kill-child", ...call], {
      env: { PATH: process.env.PATH ?? "", BLINDRELAY_CONFIG_DIR: house.path("config") },
      stdio: "ignore",
    });
    const ended = once(container, "exit");
    // Node takes a while until it runs a program.
    const timer = setInterval(() => {
      const children = `/proc/${container.pid}/task/${container.pid}/children`;
      const first = Number(readFileSync(children, "utf8"));
      if (first > 0) process.kill(first, "SIGTERM");
    }, 100);
    onTestFinished(() => {
      clearInterval(timer);
      container.kill("SIGKILL");
    });
    expect(await ended).toEqual([143, null]);
  },
);

describe.skipIf(!HAS_SOCAT)("on a terminal", () => {
  const login = (TERM: string) => house.terminal(["login"], { BLINDRELAY_URL: house.url, TERM });

  // nodejs/node#60415
  it("answers that are pasted at once are taken in turn, and no password is shown", async () => {
    const terminal = login("dumb");
    await terminal.sees(/User name: /);
    terminal.type(`ada\r${PASSWORD}\r\r`);
    await terminal.sees(/logged in to .* as ada/);
    expect(await terminal.ended()).toBe(0);
    expect(terminal.said.text).not.toContain(PASSWORD.slice(0, 6));
    expect(terminal.said.text).toContain("the terminal is as before");
  });

  it("what is typed ahead is shown only where its question shows it", async () => {
    const terminal = login("xterm");
    await terminal.sees(/User name: /);
    terminal.type(`ada\r${PASSWORD.slice(0, 9)}`);
    await terminal.sees(/Password: /);
    terminal.type(`${PASSWORD.slice(9)}\rtyped`);
    await terminal.sees(/One-time code .*: typed/);
    // Earlier lines, of which one is a password, are not had again.
    terminal.type("\u0015\u001b[A\u001b[A\u001b[A\r");
    await terminal.sees(/logged in to .* as ada/);
    expect(await terminal.ended()).toBe(0);
    expect(terminal.said.text).not.toContain(PASSWORD.slice(0, 6));
  });
});
