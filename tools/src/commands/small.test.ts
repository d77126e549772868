/** The parts of shell, token and completion that need no other process. */
import { spawnSync } from "node:child_process";
import { makeToken, TOKEN_PREFIXES, type TokenKind } from "@blindrelay/protocol";
import type { Command } from "commander";
import { beforeEach, describe, expect, it } from "vitest";
import { typeable } from "../base/methods.ts";
import { makeCli } from "../cli.ts";
import { places } from "./completion.ts";
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

/** Whether a shell is installed; if not, its test is skipped visibly. */
const has = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

describe("completion", () => {
  let cli: Command;
  beforeEach(async () => {
    cli = await makeCli({});
  });

  it("knows every command with its options", () => {
    const all = places(cli);
    const flash = all.find(({ path }) => path === "flash");
    expect(flash?.words).toEqual(expect.arrayContaining(["--program", "--dry-run", "--watch"]));
    expect(all.find(({ path }) => path === "agent export")?.wantsAgent).toBe(true);
    expect(all[0]?.words).toEqual(expect.arrayContaining(["doctor", "shell", "--profile"]));
  });

  const script = (shell: string): string => {
    let out = "";
    const write = process.stdout.write;
    process.stdout.write = ((text: string) => {
      out += text;
      return true;
    }) as typeof process.stdout.write;
    try {
      cli.parse(["node", "blindrelay", "completion", shell]);
    } finally {
      process.stdout.write = write;
    }
    return out;
  };

  const completeInBash = (...words: string[]): string[] => {
    const list = words.map((word) => `'${word}'`).join(" ");
    const lines = [
      script("bash"),
      "blindrelay() { echo pump-7; }", // the keyring's agents
      `COMP_WORDS=(blindrelay ${list}); COMP_CWORD=${words.length}; _blindrelay`,
      `printf "%s\\n" "$\{COMPREPLY[@]}"`,
    ];
    const { stdout, stderr } = spawnSync("bash", ["-c", lines.join("\n")], { encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout.trim().split("\n");
  };

  it("works in a real bash", () => {
    expect(completeInBash("doc")).toEqual(["doctor"]);
    expect(completeInBash("agent", "exp")).toEqual(["export"]);
    expect(completeInBash("flash", "/dev/ttyUSB0", "--dry")).toEqual(["--dry-run"]);
    expect(completeInBash("call", "pu")).toEqual(["pump-7"]);
    expect(completeInBash("completion", "")).toEqual(["bash", "zsh", "fish", "--help"]);
  });

  it.skipIf(!has("zsh"))("works in a real zsh", () => {
    const completeInZsh = (...typed: string[]): string[] => {
      const list = typed.map((word) => `'${word}'`).join(" ");
      const lines = [
        "compdef() { true; }; _files() { print -r -- FILES; }",
        // Like compadd: prints what begins with the current word; false if nothing is left.
        `compadd() { shift; local found=($\{(M)@:#$words[CURRENT]*}); print -rl -- $found; (( $#found )); }`,
        script("zsh"),
        "blindrelay() { echo pump-7; }",
        `words=(blindrelay ${list}); CURRENT=${typed.length + 1}; _blindrelay`,
      ];
      const ran = spawnSync("zsh", ["-fc", lines.join("\n")], { encoding: "utf8" });
      expect(ran.stderr).toBe("");
      return ran.stdout.trim().split("\n");
    };
    expect(completeInZsh("doc")).toEqual(["doctor"]);
    expect(completeInZsh("agent", "exp")).toEqual(["export"]);
    expect(completeInZsh("agent", "export", "--fo")).toEqual(["--format"]);
    expect(completeInZsh("call", "pu")).toEqual(["pump-7"]);
    expect(completeInZsh("flash", "./x").at(-1)).toBe("FILES");
  });

  it.skipIf(!has("fish"))("works in a real fish", () => {
    const completeInFish = (typed: string): string[] => {
      const lines = [
        "function blindrelay; echo pump-7; end",
        script("fish"),
        `complete -C '${typed}'`,
      ];
      const ran = spawnSync("fish", ["--no-config", "-c", lines.join("\n")], { encoding: "utf8" });
      expect(ran.stderr).toBe("");
      return ran.stdout.trim().split("\n");
    };
    expect(completeInFish("blindrelay doc")).toEqual(["doctor"]);
    expect(completeInFish("blindrelay agent exp")).toEqual(["export"]);
    expect(completeInFish("blindrelay agent export ")).toEqual(["pump-7"]);
    expect(completeInFish("blindrelay completion ")).toEqual(["bash", "fish", "zsh"]);
  });
});
