/** The commands' help, and what they refuse before anything is sent. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { CALL_ERRORS, CallError, type CallErrorCode } from "@blindrelay/client-sdk";
import { makeToken } from "@blindrelay/protocol";
import { EXIT, Failure } from "@blindrelay/protocol/command-line";
import type { Command } from "commander";
import { afterAll, expect, it, vi } from "vitest";
import { callFailure } from "./base/call-failure.ts";
import { jsonText, printStatus, table } from "./base/output.ts";
import { exitCodeOf, makeCli } from "./cli.ts";
import { asText } from "./commands/events.ts";
import { type Profile, profilePath, readProfile, writeProfile } from "./config/profile.ts";
import { checkAgentId, httpBase, Settings } from "./config/settings.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ENV = {
  BLINDRELAY_CONFIG_DIR: folder,
  BLINDRELAY_URL: "http://127.0.0.1:1",
  BLINDRELAY_ACCOUNT_TOKEN: makeToken("account", new Uint8Array(32)),
  BLINDRELAY_AGENT_TOKEN: makeToken("e2e", new Uint8Array(32)),
};

const failureOf = (attempt: () => unknown): Failure => {
  try {
    attempt();
  } catch (error) {
    if (error instanceof Failure) return error;
  }
  throw new Error("no Failure");
};

const everyCommand = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(everyCommand),
];

const helpOf = (command: Command): string => {
  let page = "";
  command.configureOutput({
    writeOut: (text) => {
      page += text;
    },
  });
  command.outputHelp();
  return page;
};

it("shows an example for every command, accepts no secret as a flag, and --json everywhere", async () => {
  const commands = everyCommand(await makeCli({}));
  expect(commands.map((command) => command.name())).toEqual(
    expect.arrayContaining(["login", "call", "events", "run", "add", "export"]),
  );
  for (const command of commands) {
    const page = helpOf(command);
    expect(page, command.name()).toContain("Example:\n");
    expect(page, command.name()).not.toMatch(/--[a-z-]*(token|secret|password) </);
    const isLeaf = command.commands.length === 0;
    const hasJson = command.options.some(({ long }) => long === "--json");
    expect(hasJson, `${command.name()} --json`).toBe(isLeaf);
  }
});

it.each([
  [["call"]],
  [["call", "pump-7"]],
  [["call", "pump-7", "echo", "5"]],
  [["call", "pump 7", "echo"]],
  [["call", "pump-7", "echo", "--timeout", "soon"]],
  [["call", "pump-7", "echo", "--timeout", "0"]],
  [["call", "pump-7", "echo", "--agent-token", "e2e_x"]],
  [["events", "--count", "0"]],
  [["agent"]],
  [["agent", "add", "x", "--id", "a b"]],
  [["agent", "add", "x", "--packet-version", "3"]],
  [["agent", "run", "x.mjs"]],
  [["shell", "pump-7", "--baud", "9600"]],
  [["shell", "pump-7", "--dtr", "off"]],
  [["shell", "pump-7", "--serial", "--json"]],
  [["shell", "--serial"]],
  [["bridge"]],
  [["bridge", "/dev/x", "--config", "x.json"]],
  [["bridge", "--config", "x.json", "--baud", "9600"]],
  [["bridge", "--config", "x.json", "--flow-control", "xon"]],
  [["bridge", "/dev/x", "--agent", "pump-7"]],
  [["bridge", "/dev/x", "--mode", "raw"]],
  [["bridge", "/dev/x", "--mode", "raw", "--mapping", "x.json"]],
  [["--profile", "../x", "call", "pump-7", "echo"]],
])("ends with 2 for %j", async (args) => {
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const cli = await makeCli(ENV, args);
  const run = cli.parseAsync(["node", "blindrelay", ...args]);
  const code = await run.then(() => 0, exitCodeOf);
  expect(code).toBe(2);
});

it("an empty --profile, of a variable that is not set, is not the default one", async () => {
  const args = ["--profile=", "agent", "rm", "pump-7", "--yes"];
  const run = (await makeCli(ENV, args)).parseAsync(["node", "blindrelay", ...args]);
  await expect(run).rejects.toThrow(/invalid profile name/);
});

it("has one exit code for every way a call can fail", () => {
  const codes = Object.keys(CALL_ERRORS) as CallErrorCode[];
  const exits = codes.map((code) => [code, callFailure(new CallError(code, "")).exitCode]);
  expect(Object.fromEntries(exits)).toEqual({
    REMOTE: 3,
    BAD_ANSWER: 3,
    AGENT_OFFLINE: 4,
    UNREACHABLE: 4,
    BUSY: 4,
    AGENT_NOT_FOUND: 5,
    REFUSED: 5,
    TIMED_OUT: 6,
    UNPROVEN: 6,
    OUTCOME_UNKNOWN: 6,
    BAD_ARGUMENT: 2,
    TOO_LARGE: 2,
    ABORTED: 70,
    CLOSED: 70,
  });
});

it("prefers the environment to the profile, and keeps a secret with its version", () => {
  const path = profilePath("default", ENV) as string;
  const profile: Profile = {
    url: "https://relay.example/base",
    username: "ada",
    account_token: "acct_kept",
    keyring: { constructor: { agent_token: "e2e_kept", packet_version: "2" } },
  };
  expect(readProfile(path)).toBeNull();
  writeProfile(path, profile);
  const kept = new Settings({ BLINDRELAY_CONFIG_DIR: folder }, "default");
  expect(kept.socketUrl()).toBe("wss://relay.example/base/wss");
  expect(kept.httpUrl()).toBe("https://relay.example/base");
  expect(kept.accountToken()).toBe("acct_kept");
  expect(kept.secretOf("constructor")).toEqual({
    agentToken: "e2e_kept",
    version: "2",
    deviceKey: null,
  });
  expect(() => kept.secretOf("toString")).toThrow(Failure);
  const given = new Settings(ENV, "default");
  expect(given.secretOf("constructor")).toEqual({
    agentToken: ENV.BLINDRELAY_AGENT_TOKEN,
    version: "1",
    deviceKey: null,
  });
  expect(given.httpUrl()).toBe("http://127.0.0.1:1");
});

it.each([
  ["http://127.0.0.1:8080/", "http://127.0.0.1:8080"],
  ["wss://relay.example/wss", "https://relay.example"],
  ["https://relay.example/base/", "https://relay.example/base"],
])("finds the REST address of %s", (given, base) => {
  expect(httpBase(given)).toBe(base);
});

it("treats an empty variable as unset, because CI systems set those", () => {
  const env = Object.fromEntries(Object.keys(ENV).map((name) => [name, ""]));
  const none = new Settings({ ...env, BLINDRELAY_CONFIG_DIR: join(folder, "none") }, "default");
  expect(() => none.httpUrl()).toThrow("which relay?");
  expect(() => none.accountToken()).toThrow("which account?");
  expect(none.secretAtHand("pump-7")).toBeNull();
  // Not the current folder.
  expect(profilePath("work", { BLINDRELAY_CONFIG_DIR: "", XDG_CONFIG_HOME: "/x" })).toBe(
    "/x/blindrelay/work.json",
  );
});

it("prints no misplaced secret, and sends none", () => {
  const secret = makeToken("e2e", new Uint8Array(32).fill(7));
  const mistyped = `${secret.slice(0, -3)}x`;
  for (const text of [secret, ` ${secret}\n`, mistyped]) {
    const failure = failureOf(() => checkAgentId(text));
    expect([failure.exitCode, failure.message]).toEqual([
      EXIT.refused,
      "an end-to-end secret (e2e_) in place of an agent id",
    ]);
  }
  expect(checkAgentId("login_pump-7")).toBe("login_pump-7");
  for (const address of [secret, "ftp://hidden", "https://ada:hidden@relay.example", ""]) {
    const { exitCode, message } = failureOf(() => httpBase(address));
    expect(exitCode).toBe(2);
    expect(message).not.toMatch(/e2e_|hidden/);
  }
});

it("does not let text from others control the terminal", () => {
  let written = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written += text;
    return true;
  });
  printStatus("a\u001b[2Jb\u009bc\u202ed\ne");
  expect(written).toBe("a\ufffd[2Jb\ufffdc\ufffdd\ne\n");
  // An agent with this name must not create a line of the table, nor one of events.
  expect(table(["A"], [["x\npump-8 is offline"]])).toBe("A\nx\ufffdpump-8 is offline");
  const presence = { kind: "presence", agent_id: "x\npump-8", status: "online" } as const;
  expect(asText(presence)).toBe("x\ufffdpump-8 is online");
  const hostile = { a: "\u001b[2J\u009b2J\u007f\u2028\u202e" };
  expect(jsonText(hostile)).toBe('{"a":"\\u001b[2J\\u009b2J\\u007f\\u2028\\u202e"}');
  expect(JSON.parse(jsonText(hostile))).toEqual(hostile);
  expect(table(["A", "B"], [["long", "x"]])).toBe("A     B\nlong  x");
});

it.each([["token"], ["inspect"], ["call", "pump-7", "echo", "-"]])(
  "%s whose standard input breaks ends with that, not as a bug",
  async (...words) => {
    const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
    const broken = new Readable({
      read(): void {
        this.destroy(new Error("read ECONNRESET"));
      },
    });
    Object.defineProperty(process, "stdin", { configurable: true, value: broken });
    const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    try {
      const cli = await makeCli(ENV, words);
      const code = await cli.parseAsync(["node", "blindrelay", ...words]).then(() => 0, exitCodeOf);
      expect(code).toBe(2);
      expect(said).toHaveBeenCalledExactlyOnceWith(
        "blindrelay: standard input cannot be read: read ECONNRESET\n",
      );
    } finally {
      said.mockRestore();
      Object.defineProperty(process, "stdin", stdin);
    }
  },
);
