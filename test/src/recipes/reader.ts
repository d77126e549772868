/**
 * A reader who does what the document says: one shell in an empty folder, and a terminal for
 * dialogues.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Said, Terminal } from "../cli/terminal.ts";
import { type Block, lineSource, readTurn } from "./document.ts";

const WORKSPACE = fileURLToPath(new URL("../../../", import.meta.url));

/** What the reader has before the first line. */
export interface ReaderSetup {
  /** Creates the commands in a folder, which is then on the PATH. */
  readonly link: (bin: string) => void;
  /** Where `npm install` would put a package from. */
  readonly packageAt: (name: string) => string;
}

/** `npm run link`: the commands as a reader with a checkout has them. */
export const linkCheckout = (): ReaderSetup => ({
  link: (bin) => {
    execFileSync(process.execPath, [join(WORKSPACE, "scripts/link.mjs"), bin]);
  },
  packageAt: (name) => join(WORKSPACE, name),
});

/** A step runs a fleet of a thousand devices, beside all other tests. */
const STEP_MS = 300_000;

/** What the document installs. */
const INSTALLED = ["protocol", "client-sdk"];

/**
 * The first of these lines that is missing; null if each is present, in any order: some come from
 * background processes.
 */
const missingLine = (said: string, expected: readonly string[]): string | null => {
  const lines = said.split(/\r?\n/);
  for (const wanted of expected) {
    const pattern = new RegExp(`^${lineSource(wanted)}$`);
    const at = lines.findIndex((line) => pattern.test(line));
    if (at === -1) return wanted;
    lines.splice(at, 1);
  }
  return null;
};

export class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-recipe-"));
  readonly work = join(this.folder, "work");
  /** This reader's values for the blocks that the reader may change. */
  yours: Readonly<Record<string, string>> = {};
  private readonly installation: ReaderSetup;
  private readonly env: Record<string, string>;
  private readonly shell: ChildProcess;
  private readonly said: Said;
  private blockStart = 0;
  private blocks = 0;

  constructor(installation: ReaderSetup) {
    this.installation = installation;
    const bin = join(this.folder, "bin");
    mkdirSync(this.work);
    mkdirSync(bin);
    installation.link(bin);
    this.env = {
      PATH: `${bin}:${process.env.PATH ?? ""}`,
      HOME: this.folder,
      TERM: "dumb",
      BLINDRELAY_CONFIG_DIR: join(this.folder, "config"),
      BLINDRELAY_METRICS_PORT: "0",
    };
    // A group of its own, so that background processes end with it.
    this.shell = spawn("bash", ["--norc", "--noprofile"], {
      cwd: this.work,
      env: this.env,
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    this.shell.stdin?.on("error", () => undefined); // a block that failed ended it
    this.said = new Said(this.shell, STEP_MS);
    // One pipe, so that standard output and standard error arrive in order.
    this.shell.stdin?.write("exec 2>&1\n");
  }

  async follow(block: Block): Promise<void> {
    const where = `docs/recipes.md:${block.line}`;
    if (block.kind === "text") await this.expect(block.text, where);
    else if (block.kind === "dialogue") await this.talk(block.text, where);
    else if (block.kind === "install") this.install();
    else await this.type(block, where);
  }

  async close(): Promise<void> {
    const { pid } = this.shell;
    if (pid !== undefined) {
      try {
        process.kill(-pid, "SIGKILL");
      } catch {
        // All processes have ended.
      }
      if (!this.said.ended) await once(this.shell, "close");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** What npm would put there, without the registry. */
  private install(): void {
    const modules = join(this.work, "node_modules");
    for (const name of INSTALLED) {
      const path = join(modules, "@blindrelay", name);
      mkdirSync(dirname(path), { recursive: true });
      symlinkSync(this.installation.packageAt(name), path);
    }
    const esbuild = join(WORKSPACE, "node_modules/.bin/esbuild");
    mkdirSync(join(modules, ".bin"));
    writeFileSync(join(modules, ".bin/esbuild"), `#!/bin/sh\nexec '${esbuild}' "$@"\n`, {
      mode: 0o755,
    });
  }

  private async type(block: Block, where: string): Promise<void> {
    const own = block.kind === "yours" ? this.yours : {};
    Object.assign(this.env, own);
    const more = Object.entries(own).map(([name, value]) => `export ${name}='${value}'`);
    const file = join(this.folder, `block-${++this.blocks}.sh`);
    writeFileSync(file, `${[block.text, ...more].join("\n")}\n`);
    const done = `${file} is done`;
    this.blockStart = this.said.text.length;
    // A step that fails ends the shell.
    this.shell.stdin?.write(`set -e; . '${file}' </dev/null; set +e; echo '${done}'\n`);
    await this.said.until(
      (text) => (text.includes(done) ? true : null),
      () => `${where}: the end`,
    );
  }

  private async expect(text: string, where: string): Promise<void> {
    const lines = text.split("\n");
    const missing = (): string | null => missingLine(this.said.text.slice(this.blockStart), lines);
    await this.said.until(
      () => (missing() === null ? true : null),
      () => `${where}: "${missing()}"`,
    );
  }

  /** The first line is the command; it runs on a terminal of its own. */
  private async talk(text: string, where: string): Promise<void> {
    const [first = "", ...lines] = text.split("\n");
    const terminal = new Terminal([readTurn(first).typed ?? ""], this.env, this.work);
    for (const line of lines) {
      const { shown, typed } = readTurn(line);
      await terminal.sees(new RegExp(lineSource(shown)), `${where}: "${shown}"`);
      if (typed !== null) terminal.type(typed === "^]" ? "\x1d" : `${typed}\r`);
    }
    const code = await terminal.ended();
    if (code !== 0) throw new Error(`${where}: exit code ${code}: ${terminal.said.text}`);
  }
}
