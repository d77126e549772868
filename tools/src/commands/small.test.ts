/** The parts of shell, token and completion that need no other process. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken, TOKEN_PREFIXES, type TokenKind } from "@blindrelay/protocol";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { typeable } from "../base/methods.ts";
import { table } from "../base/output.ts";
import { makeCli } from "../cli.ts";
import { writeProfile } from "../config/profile.ts";
import { complete, readLine } from "./shell.ts";
import { describeToken } from "./token.ts";

describe("token", () => {
  const kinds = Object.keys(TOKEN_PREFIXES) as TokenKind[];

  it.each(kinds)("identifies %s, and reveals nothing of its content", (kind) => {
    const token = makeToken(kind, new Uint8Array(32).fill(9));
    const report = describeToken(token);
    expect(report).toMatchObject({ kind, valid: true, problem: null });
    expect(JSON.stringify(report)).not.toContain(token.slice(-20));
  });

  it("distinguishes a typing error, a truncated token, white space and other text", () => {
    const token = makeToken("e2e", new Uint8Array(32).fill(9));
    const swapped = `${token.slice(0, 10)}${token[11]}${token[10]}${token.slice(12)}`;
    const last = token.endsWith("0") ? "1" : "0";
    expect(describeToken(token.slice(0, -1) + last).problem).toContain("checksum");
    if (swapped !== token) expect(describeToken(swapped).problem).toContain("checksum");
    expect(describeToken(token.slice(0, -1)).problem).toContain("here 48");
    expect(describeToken(` ${token}`).problem).toContain("white space");
    expect(describeToken("password")).toMatchObject({ kind: null, valid: false });
  });
});

describe("shell", () => {
  it("reads a line as method and parameters", () => {
    expect(readLine("  system.info ")).toEqual({ method: "system.info" });
    expect(readLine('echo {"a b": [1]}')).toEqual({ method: "echo", params: { "a b": [1] } });
    expect(readLine("echo [1]")).toEqual({ method: "echo", params: [1] });
    expect(() => readLine("echo 5")).toThrow(/object or array/);
    expect(() => readLine("echo {")).toThrow("the parameters are invalid JSON (line 1, column 2)");
  });

  it("completes methods, commands and agents", () => {
    const methods = ["valve.open", "valve.close", "echo"];
    expect(complete("val", methods, [])[0]).toEqual(["valve.open", "valve.close"]);
    expect(complete(".ag", methods, [])[0]).toEqual([".agent", ".agents"]);
    expect(complete(".agent pu", methods, ["pump-7", "tank-1"])).toEqual([["pump-7"], "pu"]);
    expect(complete("ech", methods, [])).toEqual([["echo "], "ech"]);
    expect(complete("echo ", methods, ["x"])[0]).toEqual([]);
  });

  it("offers no method with a name that would control the terminal or cannot be typed", () => {
    const hostile = [
      "a\u001b[2J",
      "b\u009bc",
      "c d",
      "e\nf",
      "\u202eg",
      "",
      "h".repeat(200),
      5,
      null,
    ];
    expect(typeable([...hostile, "valve.öffnen"])).toEqual(["valve.öffnen"]);
    expect(typeable("valve.open")).toEqual([]);
  });
});

it("a table is cut for a terminal that is too narrow, but not what names its rows", () => {
  const rows = [["pump-in-the-hall-7", "online", "a name as long as people make them, and longer"]];
  const header = ["AGENT", "STATUS", "NAME"];
  const whole = "pump-in-the-hall-7  online  a name as long as people make them, and longer";
  expect(table(header, rows, 200).split("\n")[1]).toBe(whole);
  expect(table(header, rows, 40).split("\n")).toEqual([
    "AGENT               STATUS  NAME",
    "pump-in-the-hall-7  online  a name as l…",
  ]);
  expect(table(header, rows, 1).split("\n")[1]).toBe("pump-in-the-hall-7  online  a nam…");
});

/** Whether a shell is installed; if not, its test is skipped visibly. */
const has = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

const ROOT = join(import.meta.dirname, "../../..");
/** The programs, each as a function of a shell. */
const PROGRAMS = {
  blindrelay: "tools",
  "blindrelay-server": "relay-server",
  "blindrelay-sim": "simulator",
} as const;
type Program = keyof typeof PROGRAMS;

describe("completion", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-completion-"));
  const env = { ...process.env, BLINDRELAY_CONFIG_DIR: folder };
  const key = { agent_token: makeToken("e2e", new Uint8Array(32)), packet_version: "1" };
  beforeAll(() => {
    const keyring = { "pump-7": key, "$(touch x)": key };
    writeProfile(join(folder, "default.json"), {
      url: "https://a.example",
      username: "ada",
      keyring,
    });
    writeProfile(join(folder, "work.json"), { url: "https://a.example", username: "ada", keyring });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const words = async (...typed: string[]): Promise<string[]> => {
    const made = await makeCli({ BLINDRELAY_CONFIG_DIR: folder }, [
      "completion",
      "offers",
      "--",
      ...typed,
    ]);
    const told: string[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      told.push(String(text));
      return true;
    });
    try {
      await made.parseAsync(["node", "blindrelay", "completion", "offers", "--", ...typed]);
    } finally {
      write.mockRestore();
    }
    return told.join("").split("\n").filter(Boolean);
  };

  it.each([
    [["doc"], ["doctor"]],
    [["agent", "ex"], ["export"]],
    [["agent", "export", ""], ["pump-7"]],
    [["agent", "export", "pump-7", "--fo"], ["--format"]],
    [
      ["agent", "export", "--format", "e"],
      ["env", "espruino"],
    ],
    [["flash", "/dev/ttyUSB0", "--dr"], ["--dry-run"]],
    [["flash", "--program", ""], []],
    [["call", "--timeout", "5", "p"], ["pump-7"]],
    [
      ["call", "pump-7", ""],
      ["system.info", "system.ping"],
    ],
    [["call", "pump-7", "system.info", ""], []],
    [["call", "pump-7", "--pr"], ["--profile"]],
    [["--profile", "w"], ["work"]],
    [["--profile", "work", "cal"], ["call"]],
    [["events", "--count", "1", ""], ["pump-7"]],
    [
      ["completion", ""],
      ["bash", "zsh", "fish"],
    ],
  ])("%j: %j", async (typed, offered) => {
    expect(await words(...typed)).toEqual(offered);
  });

  it("says which shells there are", () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, "tools/src/main.ts"), "completion", "csh"],
      { encoding: "utf8" },
    );
    expect([status, stderr.split("\n")[0]]).toEqual([2, "error: the shells are bash, zsh, fish"]);
  });

  /** In the shell, `program` is what is in the checkout. */
  const ran = (shell: string, program: Program, asFunction: string, lines: string[]): string[] => {
    const main = join(ROOT, PROGRAMS[program], "src/main.ts");
    const { stdout } = spawnSync(process.execPath, [main, "completion", shell], {
      encoding: "utf8",
    });
    const start = `'${process.execPath}' '${main}'`;
    const text = [asFunction.replace("NAME", program).replace("START", start), stdout, ...lines];
    const options = shell === "fish" ? ["--no-config", "-c"] : shell === "zsh" ? ["-fc"] : ["-c"];
    const ended = spawnSync(shell, [...options, text.join("\n")], {
      encoding: "utf8",
      env,
      cwd: folder,
    });
    expect(ended.stderr).toBe("");
    return ended.stdout.trim().split("\n");
  };
  const list = (typed: readonly string[]): string => typed.map((word) => `'${word}'`).join(" ");

  const inBash = (program: Program, ...typed: string[]): string[] =>
    ran("bash", program, 'NAME() { START "$@"; }', [
      `COMP_WORDS=(${program} ${list(typed)}); COMP_CWORD=${typed.length}; _${program.replace("-", "_")}`,
      `printf "%s\\n" "$\{COMPREPLY[@]}"`,
    ]);

  it("works in a real bash, for all three programs", () => {
    expect(inBash("blindrelay", "flash", "def")).toEqual(["default.json"]);
    expect(inBash("blindrelay-server", "user", "")).toEqual(
      expect.arrayContaining(["add", "list"]),
    );
    expect(inBash("blindrelay-sim", "run", "--wor")).toEqual(["--world"]);
  });

  it.skipIf(!has("zsh"))("works in a real zsh", () => {
    const inZsh = (...typed: string[]): string[] =>
      ran("zsh", "blindrelay", 'compdef() { true; }; NAME() { START "$@"; }', [
        "_files() { print -r -- FILES; }",
        // Like compadd: prints what begins with the current word; false if nothing is left.
        `compadd() { shift; local found=($\{(M)@:#$words[CURRENT]*}); print -rl -- $found; (( $#found )); }`,
        `words=(blindrelay ${list(typed)}); CURRENT=${typed.length + 1}; _blindrelay`,
      ]);
    expect(inZsh("call", "pu")).toEqual(["pump-7"]);
    expect(inZsh("flash", "./x").at(-1)).toBe("FILES");
  });

  it.skipIf(!has("fish"))("works in a real fish", () => {
    const inFish = (typed: string): string[] =>
      ran("fish", "blindrelay", "function NAME; START $argv; end", [`complete -C '${typed}'`]);
    expect(inFish("blindrelay agent export ")).toEqual(["pump-7"]);
    expect(inFish("blindrelay flash def")).toEqual(["default.json"]);
  });
});
