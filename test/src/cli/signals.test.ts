/** A signal ends a command, whatever it waits for, and leaves the terminal as it was. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLI, House, PASSWORD } from "./processes.ts";

const CTRL_C = "\x03";
const INTERRUPTED = 130;
const TERMINATED = 143;
/** Many times what an end takes, and far less than a test may. */
const END_MS = 60_000;

const house = new House();
beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, PASSWORD);
  await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  await house.cli([...login, "--json"], { BLINDRELAY_PROFILE: "sealed" }, PASSWORD);
  const seal = ["--profile", "sealed", "profile", "passphrase", "--stdin"];
  expect(await house.cli(seal, {}, "a passphrase\n")).toMatchObject({ code: 0 });
});
afterAll(() => house.close());

const PROMPTS: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["a password", ["login", "--username", "grace"], /Password: /],
  ["a passphrase", ["--profile", "sealed", "agent", "list"], /Passphrase of .*: /],
  ["a new passphrase", ["profile", "passphrase"], /New passphrase: /],
  ["a yes", ["agent", "rm", "pump-7"], /\? /],
  ["a token", ["token"], /: /],
];

/** The process of this command, of whatever is in between. */
const pidOf = (args: readonly string[]): number => {
  const { stdout } = spawnSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" });
  const line = stdout
    .split("\n")
    .find(
      (each) => each.trim().replace(/^\d+ /, "") === [process.execPath, CLI, ...args].join(" "),
    );
  return Number.parseInt(line ?? "", 10);
};

describe.skipIf(!HAS_SOCAT)("a prompt (needs socat)", () => {
  const env = () => ({ BLINDRELAY_URL: house.url });

  it.each(PROMPTS)("for %s ends with 130 at Ctrl-C", async (_name, args, prompt) => {
    const terminal = house.terminal(args, env());
    await terminal.sees(prompt);
    terminal.type(CTRL_C);
    await terminal.sees(/interrupted; nothing was done/);
    await terminal.sees(/the terminal is as before/);
    expect(await terminal.ended()).toBe(INTERRUPTED);
  });

  it.each(PROMPTS.slice(0, 2))("for %s ends at SIGTERM", async (_name, args, prompt) => {
    const terminal = house.terminal(args, env());
    await terminal.sees(prompt);
    process.kill(pidOf(args), "SIGTERM");
    await terminal.sees(/the terminal is as before/);
    expect(await terminal.ended()).toBe(TERMINATED);
  });

  it("for a passphrase takes back what was mistyped", async () => {
    const terminal = house.terminal(["--profile", "sealed", "agent", "list", "--json"]);
    await terminal.sees(/Passphrase of .*: /);
    terminal.type("wrong\x15a passphraü\x7fse\r");
    await terminal.sees(/"pump-7"/);
    expect(await terminal.ended()).toBe(0);
  });
});

// As in paperclipai/paperclip#13558.
it("agent run ends at SIGTERM although nobody reads what it prints", async () => {
  const program = house.write(
    "talker.mjs",
    'export default () => { setInterval(() => console.error("x".repeat(100_000)), 5); };\n',
  );
  const args = ["agent", "run", program, "--agent", "pump-7", "--state-dir", house.path("state")];
  const child = spawn(process.execPath, [CLI, ...args, "--json"], {
    env: { ...process.env, BLINDRELAY_CONFIG_DIR: house.path("config") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    await once(createInterface(child.stdout), "line");
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const late = sleep(END_MS, ["still there"], { ref: false });
    expect(await Promise.race([ended, late])).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
  }
});
