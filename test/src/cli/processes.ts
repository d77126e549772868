/**
 * The `blindrelay` command as a real process, and a relay for it on real sockets in the test's own
 * process, for tests of the command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type Config, initStore, type RunningServer, startServer } from "@blindrelay/relay-server";
import { Terminal } from "./terminal.ts";

export const CLI = fileURLToPath(new URL("../../../tools/src/main.ts", import.meta.url));
export const RELAY = fileURLToPath(new URL("../../../relay-server/src/main.ts", import.meta.url));

export type Environment = Record<string, string>;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What `agent add --json` prints. */
export interface Added {
  readonly agent_id: string;
  readonly api_token: string;
  readonly agent_token: string;
  readonly packet_version: string;
}

export const PASSWORD = "a long password of one's own";

/**
 * Only the part of the environment that a process needs, so that a user's settings do not affect
 * tests.
 */
const environment = (env: Environment): Environment => ({
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  ...env,
});

/** A running process whose lines of standard output can be waited for. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  private readonly lines: string[] = [];
  private wake: () => void = () => undefined;
  private over = false;
  private errors = "";

  constructor(
    file: string,
    args: readonly string[],
    env: Environment,
    input?: string,
    node = process.execPath,
  ) {
    this.child = spawn(node, [file, ...args], {
      env: environment(env),
      stdio: ["pipe", "pipe", "pipe"],
    });
    const { stdin, stdout, stderr } = this.child;
    if (stdin === null || stdout === null || stderr === null) throw new Error("no pipes");
    stdin.on("error", () => undefined); // A command that ended early does not read its input.
    stdin.end(input ?? "");
    createInterface(stdout).on("line", (line) => {
      this.lines.push(line);
      this.wake();
    });
    stderr.on("data", (chunk: Buffer) => {
      this.errors += chunk.toString();
      this.wake();
    });
    const whole = Promise.all([text(stdout), text(stderr), once(this.child, "close")]);
    this.ended = whole.then(([out, err, [code]]) => {
      this.over = true;
      this.wake();
      return { code, stdout: out, stderr: err };
    });
  }

  /** The next line of standard output; rejects if the process ends first. */
  async line(): Promise<string> {
    await this.until(() => this.lines.length > 0);
    return this.lines.shift() as string;
  }

  /** Resolves once standard error has this text; rejects if the process ends first. */
  complains(text: string): Promise<void> {
    return this.until(() => this.errors.includes(text));
  }

  private async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      if (this.over) throw new Error(`it ended: ${JSON.stringify(await this.ended)}`);
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async json<Value = Record<string, unknown>>(): Promise<Value> {
    return JSON.parse(await this.line()) as Value;
  }

  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** A folder, a relay with one admin and no one-time codes, and all processes started here. */
export class House {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-tools-"));
  url = "";
  private relay: RunningServer | null = null;
  private readonly running: Running[] = [];
  private readonly terminals: Terminal[] = [];

  /** `settings`: for the relay, in addition to its addresses. */
  async open(settings: Partial<Config> = {}): Promise<void> {
    await this.makeStore(false);
    await this.startRelay(settings);
  }

  /** A relay that requires one-time codes, with a user that has none yet. */
  async openForTwoFactors(username: string): Promise<void> {
    await this.makeStore(true);
    await this.addUser(username);
    await this.startRelay({});
  }

  async addUser(username: string): Promise<void> {
    const args = ["user", "add", username, "--password-stdin", "--data", this.path("relay")];
    const { code, stderr } = await new Running(RELAY, args, {}, PASSWORD).ended;
    if (code !== 0) throw new Error(stderr);
  }

  /** Ends the relay and starts it again on another port. */
  async moveTo(port: number): Promise<void> {
    await this.relay?.stop();
    await this.startRelay({ port });
  }

  /** The relay in a process of its own from now on, at the same address and with the same data. */
  async relayProcess(): Promise<Running> {
    await this.relay?.stop();
    this.relay = null;
    const { port } = new URL(this.url);
    const flags = ["--data", this.path("relay"), "--port", port, "--metrics-port", "0"];
    const relay = this.keep(new Running(RELAY, ["start", ...flags, "--log-level", "silent"], {}));
    await relay.line();
    return relay;
  }

  async close(): Promise<void> {
    for (const terminal of this.terminals) terminal.kill();
    await Promise.all(this.running.map((process) => process.stop("SIGKILL")));
    await this.relay?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, content: string): string {
    writeFileSync(this.path(name), content);
    return this.path(name);
  }

  /** Runs a command until it ends. */
  cli(args: readonly string[], env: Environment = {}, input?: string): Promise<Ended> {
    return new Running(CLI, args, this.surrounding(env), input).ended;
  }

  /** Starts a command that runs until it is stopped, at the latest by `close`. */
  start(args: readonly string[], env: Environment = {}, input?: string): Running {
    return this.keep(new Running(CLI, args, this.surrounding(env), input));
  }

  /** The command on a terminal of its own; stopped by `close` at the latest. Needs socat. */
  terminal(args: readonly string[], env: Environment = {}, file = CLI): Terminal {
    const command = [process.execPath, file, ...args];
    const terminal = new Terminal(command, environment(this.surrounding({ TERM: "dumb", ...env })));
    this.terminals.push(terminal);
    return terminal;
  }

  private async makeStore(totp: boolean): Promise<void> {
    await initStore({ data: this.path("relay"), username: "ada", password: PASSWORD, totp });
  }

  private async startRelay(settings: Partial<Config>): Promise<void> {
    const where = {
      data: this.path("relay"),
      port: 0,
      metricsPort: 0,
      logLevel: "silent",
    } as const;
    this.relay = await startServer({ ...where, ...settings });
    this.url = this.relay.url;
  }

  private surrounding(env: Environment): Environment {
    return { BLINDRELAY_CONFIG_DIR: this.path("config"), ...env };
  }

  private keep(process: Running): Running {
    this.running.push(process);
    return process;
  }
}
