/** What a person at a terminal can do at any time: not answer, and leave. */
import { readFileSync, statSync } from "node:fs";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const CTRL_C = "\x03";
const CTRL_D = "\x04";
const PROGRAM = `
export default (agent) => {
  agent.handle("never", () => new Promise(() => {}));
  agent.handle("echo", (params) => params);
};
`;

describe.skipIf(!HAS_SOCAT)("a person at a terminal", () => {
  const house = new House();

  beforeAll(async () => {
    await house.open();
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    await house.cli(login, {}, PASSWORD);
    await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
    const program = house.write("pump.mjs", PROGRAM);
    await house.start(["agent", "run", program, "--agent", "pump-7", "--json"]).json();
  });
  afterAll(() => house.close());

  it.each([
    ["a password", ["login"], "User name: ", "ada\r", "Password: ", CTRL_C],
    ["a name", ["login"], "User name: ", "", "", CTRL_D],
    ["a token", ["token"], "not shown", "acct_", "", CTRL_C],
    ["a question", ["agent", "rm", "pump-7"], "for good", "", "", CTRL_C],
  ])(
    "may cancel at %s: nothing is done, and no error is shown",
    async (_what, args, first, typed, second, key) => {
      const terminal = house.terminal(args);
      await terminal.sees(new RegExp(first));
      terminal.type(typed);
      if (second !== "") await terminal.sees(new RegExp(second));
      terminal.type(key);
      expect(await terminal.ended()).toBe(key === CTRL_C ? 130 : 2);
      expect(terminal.said.text).toContain("; nothing was done");
      expect(terminal.said.text).not.toContain("fault");
    },
  );

  it("cancels a call with Ctrl-C, continues, and exits with Ctrl-C", async () => {
    const terminal = house.terminal(["shell", "pump-7"]);
    await terminal.sees(/pump-7> /);
    terminal.type("never\r");
    await terminal.sees(/never/);
    // Before it is in flight, Ctrl-C would exit.
    await terminal.sees(/\n/);
    terminal.type(CTRL_C);
    await terminal.sees(/aborted/);
    terminal.type('echo {"n":1}\r');
    await terminal.sees(/\n\{"n":1\}/);
    terminal.type(CTRL_C);
    expect(await terminal.ended()).toBe(0);
  });

  it("completes methods and agents on Tab, and keeps a history that only its owner can read", async () => {
    const env = { TERM: "xterm" };
    const first = house.terminal(["shell", "pump-7"], env);
    await first.sees(/pump-7> /);
    // Tab must arrive on its own: within pasted text it is a character.
    first.type("ec");
    await first.sees(/ec/);
    first.type("\t");
    await first.sees(/ho/);
    first.type('{"n":2}\r');
    await first.sees(/\n\{"n":2\}/);
    first.type(".agent pu");
    await first.sees(/agent pu/);
    first.type("\t");
    await first.sees(/mp-7/);
    first.type("\r");
    await first.sees(/pump-7> /);
    first.type("\x04");
    expect(await first.ended()).toBe(0);
    expect(statSync(house.path("config/shell-history")).mode & 0o777).toBe(0o600);
    const second = house.terminal(["shell", "pump-7"], env);
    await second.sees(/pump-7> /);
    second.type("\x1b[A\x1b[A\r"); // up, twice
    await second.sees(/\n\{"n":2\}/);
    second.type("\x04");
    expect(await second.ended()).toBe(0);
  });

  it("works without a folder for the history", async () => {
    const { account_token, keyring } = JSON.parse(
      readFileSync(house.path("config/default.json"), "utf8"),
    );
    const terminal = house.terminal(["shell", "pump-7"], {
      BLINDRELAY_CONFIG_DIR: "/sys/blindrelay",
      BLINDRELAY_URL: house.url,
      BLINDRELAY_ACCOUNT_TOKEN: account_token,
      BLINDRELAY_AGENT_TOKEN: keyring["pump-7"].agent_token,
    });
    await terminal.sees(/pump-7> /);
    terminal.type('echo {"n":3}\r');
    await terminal.sees(/\n\{"n":3\}/);
    terminal.type("\x04");
    expect(await terminal.ended()).toBe(0);
  });
});
