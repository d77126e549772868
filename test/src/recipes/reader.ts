/** Somebody who does what the page says: one shell in an empty folder, and a terminal for dialogues. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { recordingEnvironment } from "../nonces/environment.ts";
import { type Block, lineSource, readTurn } from "./document.ts";

const COMMANDS = {
  blindrelay: new URL("../../../tools/src/main.ts", import.meta.url),
  "blindrelay-server": new URL("../../../relay-server/src/main.ts", import.meta.url),
};

/** Longer than any step takes on a busy machine; who waits in vain wants to see what came instead. */
const WAIT_MS = 45_000;

/** What a process said so far, and a wait for more of it. */
class Said {
  text = "";
  ended = false;
  private wake: () => void = () => undefined;

  constructor(child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
        this.wake();
      });
    }
    child.on("close", () => {
      this.ended = true;
      this.wake();
    });
  }

  /** Resolves to what `find` found; rejects with all that was said where it cannot come any more. */
  async until<Found>(find: (text: string) => Found | null, what: () => string): Promise<Found> {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.wake();
    }, WAIT_MS);
    try {
      for (;;) {
        const found = find(this.text);
        if (found !== null) return found;
        if (this.ended || late) {
          throw new Error(`${what()} did not come. What came:\n${this.text}`);
        }
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The first of these lines that is missing, others between them or not; null where all are there. */
const missingLine = (said: string, expected: readonly string[]): string | null => {
  const lines = said.split(/\r?\n/);
  let at = 0;
  for (const wanted of expected) {
    const pattern = new RegExp(`^${lineSource(wanted)}$`);
    while (at < lines.length && !pattern.test(lines[at] as string)) at++;
    if (at === lines.length) return wanted;
    at++;
  }
  return null;
};

export class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-recipe-"));
  private readonly work = join(this.folder, "work");
  private readonly env: Record<string, string>;
  private readonly yours: Record<string, string>;
  private readonly shell: ChildProcess;
  private readonly said: Said;
  private blockStart = 0;
  private blocks = 0;

  /** `yours`: this reader's values for the block that is the reader's to change. */
  constructor(yours: Record<string, string>) {
    this.yours = yours;
    const bin = join(this.folder, "bin");
    mkdirSync(bin);
    mkdirSync(this.work);
    for (const [name, url] of Object.entries(COMMANDS)) {
      const script = `#!/bin/sh\nexec '${process.execPath}' '${fileURLToPath(url)}' "$@"\n`;
      writeFileSync(join(bin, name), script);
      chmodSync(join(bin, name), 0o755);
    }
    this.env = {
      PATH: `${bin}:${process.env.PATH ?? ""}`,
      HOME: this.folder,
      TERM: "dumb",
      BLINDRELAY_CONFIG_DIR: join(this.folder, "config"),
      BLINDRELAY_METRICS_PORT: "0",
      ...recordingEnvironment(),
    };
    // A group of its own, so that whatever the page leaves in the background ends with it.
    this.shell = spawn("bash", ["--norc", "--noprofile"], {
      cwd: this.work,
      env: this.env,
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    this.shell.stdin?.on("error", () => undefined); // a block that failed ended it
    this.said = new Said(this.shell);
  }

  async follow(block: Block): Promise<void> {
    const where = `docs/recipes.md:${block.line}`;
    if (block.kind === "text") await this.expect(block.text, where);
    else if (block.kind === "dialogue") await this.talk(block.text, where);
    else await this.type(block, where);
  }

  async close(): Promise<void> {
    const { pid } = this.shell;
    if (pid !== undefined) {
      try {
        process.kill(-pid, "SIGKILL");
      } catch {
        // Nothing of it is left.
      }
      if (!this.said.ended) await once(this.shell, "close");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async type(block: Block, where: string): Promise<void> {
    const own = block.kind === "yours" ? this.yours : {};
    Object.assign(this.env, own);
    const more = Object.entries(own).map(([name, value]) => `export ${name}='${value}'`);
    const file = join(this.folder, `block-${++this.blocks}.sh`);
    writeFileSync(file, `${[block.text, ...more].join("\n")}\n`);
    const done = `${file} is done`;
    this.blockStart = this.said.text.length;
    // A step that fails ends the shell: nobody would go on after it.
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
    const address = `EXEC:${readTurn(first).typed},pty,setsid,ctty,stderr`;
    const terminal = spawn("socat", ["-", address], {
      cwd: this.work,
      env: this.env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const said = new Said(terminal);
    let at = 0;
    for (const line of lines) {
      const { shown, typed } = readTurn(line);
      const pattern = new RegExp(lineSource(shown));
      at = await said.until(
        (all) => {
          const found = pattern.exec(all.slice(at));
          return found === null ? null : at + found.index + found[0].length;
        },
        () => `${where}: "${shown}"`,
      );
      if (typed !== null) terminal.stdin?.write(typed === "^]" ? "\x1d" : `${typed}\r`);
    }
    if (!said.ended) await once(terminal, "close");
    if (terminal.exitCode !== 0) {
      throw new Error(`${where}: exit code ${terminal.exitCode}: ${said.text}`);
    }
  }
}
