/**
 * `blindrelay monitor PORT`: shows a board's output and sends what is typed. Reconnects when the
 * port is back.
 */
import { setTimeout as wait } from "node:timers/promises";
import { inSource, type Port, type SourceMap } from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import { Option } from "commander";
import type { Command } from "../base/command.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, jsonText, printStatus } from "../base/output.ts";
import { buildOnPort, shownPath } from "../config/kept-builds.ts";
import { openPort, type PortFlags } from "../repl/port.ts";
import { ADDRESS_FORMS } from "../serial/address.ts";
import { withBaud } from "./board.ts";
import type { Context } from "./context.ts";
import { DeviceText } from "./device-text.ts";

/** What Enter sends. */
const EOL = { cr: "\r", lf: "\n", crlf: "\r\n" } as const;
type Eol = keyof typeof EOL;

interface MonitorFlags extends JsonFlag, PortFlags {
  readonly eol: Eol;
  readonly echo?: boolean;
  readonly reconnect: boolean;
}

const RETRY_MS = 500;
/** Ctrl-] ends it; Ctrl-C goes to the board. */
const ESCAPE = "\x1d";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const XON_XOFF = /[\x11\x13]/g;
/**
 * Moving the cursor forward and colouring text is allowed; all other control sequences (ECMA-48)
 * are removed whole: texts such as a window's title, and what a shell on a console writes.
 */
const UNWANTED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /\x1b[\]PX^_][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|\x1b(?!\[[0-9;]*[A-DJKm])(?:\[[0-?]*[ -/]*[@-~]|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])?|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CURSOR = /\x1b\[[0-9;]*[A-Za-z]/g;

/** A line of a trace, `    at f (program:3:12)`, or its beginning. */
const FRAME = /^ {1,3}$|^ {4}(?:a?$|at?$|at )/;
/** Of a device without line ends: no more is held back. */
const MAX_LINE = 65_536;
/** No line of a trace is as long. */
const MAX_FRAME = 256;

/** Whole lines without the prompt and its cursor movements, for `--json` and pipes. */
const plainLine = (line: string): string =>
  line.replace(CURSOR, "").replace(/^[\r>]+|(?<!\r)\r+$/g, "");

/** Shows what a board prints: on a terminal as it comes, elsewhere in lines. */
export class Output {
  private readonly device = new DeviceText();
  private readonly json: boolean;
  private readonly raw: boolean;
  private held = "";
  private isLineBegun = false;

  private readonly write: (text: string) => void;

  private readonly translate: (text: string) => string;

  /** `translate`: what a line that names places is shown as. */
  constructor(
    json: boolean,
    isTerminal = process.stdout.isTTY === true,
    write = (text: string): void => void process.stdout.write(text),
    translate = (line: string): string => line,
  ) {
    this.json = json;
    this.translate = translate;
    this.raw = !json && isTerminal;
    this.write = write;
  }

  receive(bytes: Uint8Array): void {
    const text = this.device.read(bytes).replace(XON_XOFF, "");
    if (this.raw) {
      this.show(text.replace(UNWANTED, ""));
      return;
    }
    const lines = (this.held + text).split("\n");
    this.held = (lines.at(-1) ?? "").length > MAX_LINE ? "" : (lines.pop() ?? "");
    for (const line of lines) this.print(plainLine(line).replace(UNWANTED, ""));
  }

  /** On a terminal: only what may become a line of a trace is held back until it is one. */
  private show(text: string): void {
    let shown = "";
    for (const part of (this.held + text).split(/(?<=\n)/)) {
      const isFrame = !this.isLineBegun && FRAME.test(part);
      if (isFrame && !part.endsWith("\n") && part.length < MAX_FRAME) {
        this.held = part;
        this.write(shown);
        return;
      }
      shown += isFrame ? this.translate(part) : part;
      this.isLineBegun = part !== "" && !part.endsWith("\n");
    }
    this.held = "";
    this.write(shown);
  }

  /** The port is gone: an unfinished line will not be finished. */
  end(): void {
    const held = (this.held + this.device.end()).replace(UNWANTED, "");
    this.held = "";
    if (this.raw) this.write(held);
    else if (held !== "") this.print(plainLine(held));
  }

  private print(said: string): void {
    const line = this.translate(said);
    this.write(this.json ? `${jsonText({ line })}\n` : `${line}\n`);
  }
}

interface Keys {
  /** Resolves at Ctrl-]. */
  readonly ended: Promise<void>;
  /** Where typed text goes from now on; null while no port is open. */
  lead(port: Port | null): void;
  stop(): void;
}

/** Typed bytes as sent to the board: Enter is the line end that it expects. */
export const withEol = (typed: Buffer, eol: Eol): Buffer =>
  Buffer.from(typed.toString("latin1").replaceAll("\r", EOL[eol]), "latin1");

/** Typed bytes as shown on the local terminal. */
export const asEcho = (typed: Buffer): string =>
  typed.toString().replaceAll("\r", "\r\n").replaceAll("\x7f", "\b \b");

/**
 * Passes typed bytes to the open port. Piped input waits for a port, and for the port to accept it;
 * keys do not wait, because Ctrl-] must work at any time, and the user sees that the port is
 * disconnected.
 */
const readKeys = ({ eol, echo = false }: Pick<MonitorFlags, "eol" | "echo">): Keys => {
  const { stdin } = process;
  const raw = stdin.isTTY === true;
  let current: Port | null = null;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const onData = (bytes: Buffer): void => {
    const at = raw ? bytes.indexOf(ESCAPE) : -1;
    const typed = at < 0 ? bytes : bytes.subarray(0, at);
    const port = current;
    if (typed.length > 0 && port !== null) {
      if (!raw) stdin.pause();
      // A port that disconnects reports that itself, and is abandoned.
      if (raw && echo) process.stdout.write(asEcho(typed).replace(UNWANTED, ""));
      port
        .write(raw ? withEol(typed, eol) : typed)
        .catch(() => undefined)
        .then(() => {
          if (current === port) stdin.resume();
        });
    }
    if (at >= 0) end();
  };
  if (raw) stdin.setRawMode(true).on("data", onData);
  return {
    ended,
    lead: (port) => {
      current = port;
      if (raw) return;
      if (port === null) stdin.pause();
      else if (stdin.listenerCount("data") === 0) stdin.on("data", onData);
      else stdin.resume();
    },
    stop: () => {
      stdin.off("data", onData);
      if (raw) stdin.setRawMode(false);
      stdin.pause();
    },
  };
};

const monitor = async (name: string, flags: MonitorFlags, map: SourceMap | null): Promise<void> => {
  const translate = (line: string): string => inSource(line, map, shownPath);
  const output = new Output(flags.json ?? false, undefined, undefined, translate);
  let over = false;
  const keys = readKeys(flags);
  const end = Promise.race([keys.ended, interrupted()]).then(() => {
    over = true;
  });
  const follow = (opened: Port): Promise<string> =>
    new Promise((resolve) => {
      keys.lead(opened);
      opened.events = { received: (bytes) => output.receive(bytes), closed: resolve };
    });
  try {
    let first = true;
    while (!over) {
      let opened: Port;
      try {
        opened = await openPort(name, flags);
      } catch (error) {
        if (first || !(error instanceof Failure) || error.exitCode !== 7) throw error;
        await Promise.race([wait(RETRY_MS), end]);
        continue;
      }
      printStatus(
        first ? `${name} is open${process.stdin.isTTY ? "; Ctrl-] ends" : ""}` : `${name} is back`,
      );
      if (first && map !== null)
        printStatus(`places are those of ${shownPath(map.files[0] as string)}, flashed last here`);
      first = false;
      const gone = follow(opened);
      const reason = await Promise.race([gone, end]);
      keys.lead(null);
      output.end();
      if (over) {
        await opened.close();
        return;
      }
      if (!flags.reconnect)
        throw new Failure("device", `${name} disconnected${reason ? `: ${reason}` : ""}`);
      printStatus(`${name} disconnected; waiting for it to reconnect`);
    }
  } finally {
    keys.stop();
  }
};

export const addMonitor = (cli: Command, context: Context): void => {
  withBaud(
    cli
      .command("monitor")
      .description("show a board's output, and type to it; Ctrl-] ends")
      .argument("<port>", ADDRESS_FORMS),
  )
    .addOption(
      new Option("--eol <what>", "what Enter sends; boards that read lines usually need lf or crlf")
        .choices(Object.keys(EOL))
        .default("cr"),
    )
    .option("--echo", "show what is typed, for a board that does not")
    .option("--no-reconnect", "exit with 7 when the port disconnects")
    .option("--json", 'one JSON document per line: {"line"}')
    .example(`
  blindrelay monitor /dev/ttyUSB0
  blindrelay monitor /dev/ttyACM0 --baud 9600 --eol lf --echo

Errors of a program that was flashed through this port show file, line and column of its source.
On a terminal, keys go to the board as they are typed, including Ctrl-C. If the port disappears, the command
waits for it.`)
    .action((port: string, flags: MonitorFlags) =>
      monitor(port, flags, buildOnPort(context.settings().buildsDir, port)),
    );
};
