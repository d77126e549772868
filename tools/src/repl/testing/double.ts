/**
 * A double of an Espruino board: its console (echo, prompt, 0x10, Ctrl-C, XON and XOFF, a small
 * buffer that overflows), its Storage, its start. Typed and stored code is run by node:vm over real
 * sockets, so the SDK's file works in it; differences of Espruino's language are not imitated.
 */
import type { Duplex } from "node:stream";
import { type BoardContext, makeContext } from "./context.ts";
import { type DoubleOptions, OPTIONS } from "./options.ts";
import { DoubleStorage } from "./storage.ts";

const CTRL_C = "\x03";
const DELETE_LINE = "\x15";
const DLE = "\x10";
const ESCAPE = "\x1b";
const XON = "\x11";
const XOFF = "\x13";
const BANNER =
  "\r\n ____                 _ \r\n|  __|___ ___ ___ _ _|_|___ ___ \r\n 2v29 (c) 2026 G.Williams\r\n\r\n";
const TICK_MS = 2;

/** Whether newlines are still part of the line because brackets are open. */
const isOpen = (line: string): boolean => {
  let depth = 0;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const char = line.charAt(i);
    if (quote !== "") {
      if (char === "\\") i++;
      else if (char === quote) quote = "";
    } else if ("\"'`".includes(char)) quote = char;
    else if ("([{".includes(char)) depth++;
    else if (")]}".includes(char)) depth--;
  }
  return depth > 0;
};

export class EspruinoDouble {
  readonly storage: DoubleStorage;
  /** Bytes that arrived while the buffer was full. */
  lost = 0;
  /** How often it sent XOFF. */
  xoffs = 0;
  /** Reads nothing from its buffer, like a stuck board. */
  stuck = false;
  starts = 0;
  private readonly options: DoubleOptions;
  private stream: Duplex | null = null;
  private buffer = "";
  private line = "";
  private echo = true;
  private escaped = false;
  private held = false;
  private hung = false;
  /**
   * Whether the console is on Serial1, which is the stream; otherwise received bytes go to the
   * program.
   */
  private hasConsole = true;
  private next: "load" | "reset" | null = null;
  private context: BoardContext;
  private readonly ticker: NodeJS.Timeout;

  constructor(options: Partial<DoubleOptions> = {}) {
    this.options = { ...OPTIONS, ...options };
    this.storage = new DoubleStorage(this.options.storageBytes);
    this.context = this.makeContext();
    this.ticker = setInterval(() => this.tick(), TICK_MS);
  }

  /** Plugs it in. */
  connect(stream: Duplex): void {
    this.stream = stream;
    stream.on("data", (bytes: Buffer) => this.receive(bytes.toString("latin1")));
    stream.on("error", () => undefined);
    stream.on("close", () => {
      if (this.stream === stream) this.stream = null;
    });
  }

  /** Ends everything that is running. */
  end(): void {
    clearInterval(this.ticker);
    this.context.kill();
    this.stream?.destroy();
  }

  /** Runs `while (true);` until Ctrl-C arrives. */
  hang(): void {
    this.hung = true;
  }

  /** Power off and on. */
  restart(): void {
    this.buffer = "";
    this.line = "";
    this.hung = false;
    this.start(true);
  }

  /** Output of a program. */
  print(text: string): void {
    this.send(`\r\x1b[J${text}\r\n>`);
  }

  /** Sends output of another runtime. */
  say(text: string): void {
    this.send(text);
  }

  private receive(text: string): void {
    if (!this.hasConsole) {
      this.context.hear(text);
      return;
    }
    for (const char of text) {
      if (char === CTRL_C) this.interrupt();
      else if (this.buffer.length >= this.options.bufferBytes) this.lost++;
      else this.buffer += char;
    }
    if (!this.held && this.buffer.length > this.options.xoffBytes) {
      this.held = true;
      this.xoffs++;
      this.send(XOFF);
    }
  }

  /** Ctrl-C does not wait in the buffer. */
  private interrupt(): void {
    if (this.hung) this.send("Execution Interrupted\r\n>");
    this.hung = false;
    if (this.line === "" && this.buffer === "")
      this.send("\r\x1b[JPress Ctrl-C again to exit\r\n>");
    this.line = "";
    this.echo = true;
  }

  private tick(): void {
    if (this.hung || this.stuck) return;
    let left = this.options.bytesPerTick;
    while (left > 0 && this.buffer !== "" && this.next === null) {
      const char = this.buffer.charAt(0);
      this.buffer = this.buffer.slice(1);
      this.type(char);
      left--;
    }
    if (this.next !== null) {
      const boots = this.next === "load";
      this.next = null;
      this.start(boots);
    }
    if (this.held && this.buffer.length < this.options.xoffBytes / 2) {
      this.held = false;
      this.send(XON);
    }
  }

  private type(char: string): void {
    if (this.escaped) {
      this.escaped = false;
      if (char === "\n") this.line += "\n";
    } else if (char === ESCAPE) this.escaped = true;
    else if (char === DLE && this.line === "") this.echo = false;
    else if (char === DELETE_LINE) this.line = "";
    else if (char === "\n" || char === "\r") this.enter();
    else {
      this.line += char;
      if (this.echo) this.send(char);
    }
  }

  private enter(): void {
    if (isOpen(this.line)) {
      this.line += "\n";
      if (this.echo) this.send("\r\n:");
      return;
    }
    const { line, echo } = this;
    this.line = "";
    this.echo = true;
    if (echo) this.send("\r\n");
    try {
      const value = line.trim() === "" ? undefined : this.context.run(line);
      if (echo && line.trim() !== "") this.send(`=${String(value)}\r\n`);
    } catch (error) {
      this.send(`Uncaught ${String(error)}\r\n    at REPL (:1:20)\r\n`);
    }
    this.send(">");
  }

  private start(boots: boolean): void {
    this.starts++;
    this.hasConsole = true;
    this.context.kill();
    this.context = this.makeContext();
    const code = boots ? this.storage.read(".bootcde") : undefined;
    if (code === undefined) {
      this.send(`${BANNER}>`);
      return;
    }
    try {
      this.context.run(code);
    } catch (error) {
      this.send(`Uncaught ${String(error)}\r\n    at .bootcde (:1:1)\r\n`);
    }
    // Espruino forgets a load() of the boot code.
    this.next = null;
    this.send("\r\n>");
  }

  private makeContext(): BoardContext {
    return makeContext({
      options: this.options,
      storage: this.storage,
      print: (text) => this.send(`${text}\r\n`),
      write: (bytes) => this.stream?.write(bytes),
      leaveConsole: () => {
        this.hasConsole = false;
      },
      restart: (how) => {
        this.next = how;
      },
    });
  }

  private send(text: string): void {
    if (this.hasConsole) this.stream?.write(Buffer.from(text, "latin1"));
  }
}
