/**
 * A real Espruino (its Linux build) with injected clock, timers, network and console, so that it
 * can also run under a virtual clock. Its language, promises, Storage and ciphers are its own.
 *
 * Everything except its end is synchronous, over named pipes: the engine reads a command, runs it
 * in a turn of its own, runs the promise jobs that result, and answers with its effects.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { makePipe } from "../engines/pipe.ts";
import type { EspruinoSocket, EspruinoSockets } from "../espruino/board.ts";
import type { TimerPort } from "../ports.ts";

/** The file in the folder that is the flash. */
export const FLASH_FILE = "espruino.flash";
const SCRIPT_FILE = "device.js";
const LENGTH_DIGITS = 8;
/** Far above what any turn takes, even on a busy machine. */
const TURN_DEADLINE_MS = 60_000;
/** The first and the longest pause between two polls of the pipe. */
const POLL_MS = { first: 0.1, most: 4 };

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/**
 * Runs on the engine before anything else. Its functions belong to `outside`; everything else keeps
 * its usual name.
 */
const SCRIPT = `
var outside = {
  input: E.openFile("/dev/fd/3", "r"), output: E.openFile("/dev/fd/4", "w"),
  later: setTimeout, load: require,
  now: 0, did: [], thrown: null, value: null, ids: 0, timers: {}, sockets: {}
};
outside.fail = function (error) {
  outside.thrown = error.toString() + (error.stack ? "\\n" + error.stack : "");
};
outside.act = {
  run: function (code) { outside.value = eval(code); },
  fire: function (id) {
    var fn = outside.timers[id];
    delete outside.timers[id];
    if (fn) fn();
  },
  hear: function (id, event, text) {
    var socket = outside.sockets[id];
    if (event === "close") delete outside.sockets[id];
    if (socket && socket[event]) socket[event](text);
  }
};
outside.answer = function () {
  if (E.getErrorFlags().indexOf("MEMORY") >= 0) outside.fail("out of memory");
  var text = JSON.stringify({ did: outside.did, thrown: outside.thrown, value: outside.value });
  outside.did = [];
  outside.thrown = outside.value = null;
  outside.output.write(("0000000" + text.length).substr(-${LENGTH_DIGITS}) + text);
  outside.later(outside.listen, 0);
};
outside.listen = function () {
  var command = JSON.parse(outside.input.read(parseInt(outside.input.read(${LENGTH_DIGITS}), 10)));
  outside.now = command.now;
  try {
    outside.act[command.op].apply(outside, command.given);
  } catch (error) {
    outside.fail(error);
  }
  outside.later(outside.answer, 0);
};
process.on("uncaughtException", outside.fail);
global.getTime = function () { return outside.now / 1000; };
global.setTimeout = function (fn, ms) {
  outside.ids++;
  outside.timers[outside.ids] = fn;
  outside.did.push(["set", outside.ids, Math.max(ms, 0.1)]);
  return outside.ids;
};
global.clearTimeout = function (id) {
  if (id === undefined) throw new Error("clearTimeout(undefined) not allowed");
  delete outside.timers[id];
  outside.did.push(["clear", id]);
};
global.console = { log: function (line) { outside.did.push(["print", line]); } };
outside.net = {
  connect: function (target, connected) {
    var id = ++outside.ids;
    var socket = { connected: connected };
    outside.sockets[id] = socket;
    outside.did.push(["connect", id, target.host, target.port]);
    return {
      on: function (event, fn) { socket[event] = fn; },
      write: function (data) { outside.did.push(["write", id, data]); return true; },
      end: function () {
        delete outside.sockets[id];
        outside.did.push(["end", id]);
      }
    };
  }
};
global.require = function (name) { return name === "net" ? outside.net : outside.load(name); };
outside.later(outside.listen, 0);
`;

type Did =
  | readonly [what: "set", id: number, ms: number]
  | readonly [what: "clear", id: number]
  | readonly [what: "print", line: string]
  | readonly [what: "connect", id: number, host: string, port: number]
  | readonly [what: "write", id: number, data: string]
  | readonly [what: "end", id: number];

interface StepResult {
  readonly did: readonly Did[];
  readonly thrown: string | null;
  readonly value: unknown;
}

export interface EspruinoDeviceOptions {
  readonly binary: string;
  /** Contains the flash, which outlives the device. */
  readonly folder: string;
  readonly timer: TimerPort;
  readonly net: EspruinoSockets;
  /** Lines on the console. */
  readonly print: (line: string) => void;
}

/** A board from power-up to `powerOff`. */
export class EspruinoDevice {
  private readonly options: EspruinoDeviceOptions;
  private readonly child: ChildProcess;
  private readonly input: number;
  private readonly output: number;
  private readonly gone: Promise<void>;
  private readonly timers = new Map<number, unknown>();
  private readonly sockets = new Map<number, EspruinoSocket>();
  private isOff = false;

  constructor(options: EspruinoDeviceOptions) {
    this.options = options;
    const { folder, binary } = options;
    const paths = ["in", "out"].map((name) => join(folder, name)) as [string, string];
    const input = makePipe(paths[0], true);
    const output = makePipe(paths[1], false, false);
    for (const path of paths) rmSync(path);
    writeFileSync(join(folder, SCRIPT_FILE), SCRIPT);
    this.input = input.ours;
    this.output = output.ours;
    this.child = spawn(binary, [SCRIPT_FILE], {
      cwd: folder,
      // Its console reads from there as long as it runs.
      stdio: ["pipe", "ignore", "inherit", input.child, output.child],
    });
    closeSync(input.child);
    closeSync(output.child);
    this.gone = new Promise((resolve) => {
      this.child.once("error", () => resolve());
      this.child.once("exit", () => resolve());
    });
  }

  /**
   * Runs code on the board and returns its value, as far as JSON can express it. Throws what the
   * code throws.
   */
  run(code: string): unknown {
    return this.turn("run", code);
  }

  /**
   * Simulates a power cut: nothing continues, and no event arrives. Resolves when the process has
   * ended.
   */
  async powerOff(): Promise<void> {
    if (!this.isOff) {
      this.isOff = true;
      this.child.kill("SIGKILL");
      closeSync(this.input);
      closeSync(this.output);
      for (const handle of this.timers.values()) this.options.timer.clear(handle);
      for (const socket of this.sockets.values()) socket.end();
    }
    await this.gone;
  }

  private turn(op: "run" | "fire" | "hear", ...given: readonly unknown[]): unknown {
    if (this.isOff) return null;
    const command = JSON.stringify({ op, given, now: this.options.timer.now() });
    // Its JSON.parse makes UTF-8 of \u, but bytes of \x.
    const ascii = command.replace(
      /[\u007f-\u00ff]/g,
      (char) => `\\x${char.charCodeAt(0).toString(16)}`,
    );
    this.write(String(ascii.length).padStart(LENGTH_DIGITS, "0") + ascii);
    const answer = JSON.parse(this.read(Number(this.read(LENGTH_DIGITS)))) as StepResult;
    for (const did of answer.did) this.outside(did);
    if (answer.thrown !== null) throw new Error(`Espruino: ${answer.thrown}`);
    return answer.value;
  }

  private outside(did: Did): void {
    const { timer, net, print } = this.options;
    switch (did[0]) {
      case "set": {
        const [, id, ms] = did;
        const fire = (): void => {
          this.timers.delete(id);
          this.turn("fire", id);
        };
        this.timers.set(id, timer.set(ms, fire));
        return;
      }
      case "clear":
        timer.clear(this.timers.get(did[1]));
        this.timers.delete(did[1]);
        return;
      case "print":
        print(did[1]);
        return;
      case "connect": {
        const [, id, host, port] = did;
        const socket = net.connect({ host, port }, () => this.turn("hear", id, "connected"));
        this.sockets.set(id, socket);
        socket.on("data", (data) => this.turn("hear", id, "data", data));
        socket.on("close", () => {
          this.sockets.delete(id);
          this.turn("hear", id, "close");
        });
        return;
      }
      case "write":
        this.sockets.get(did[1])?.write(did[2]);
        return;
      case "end":
        this.sockets.get(did[1])?.end();
        this.sockets.delete(did[1]);
        return;
    }
  }

  private write(text: string): void {
    const bytes = Buffer.from(text, "latin1");
    for (let at = 0; at < bytes.length; ) at += writeSync(this.input, bytes, at);
  }

  private read(length: number): string {
    const bytes = Buffer.alloc(length);
    const deadline = performance.now() + TURN_DEADLINE_MS;
    let pause = POLL_MS.first;
    for (let at = 0; at < length; ) {
      const got = this.readSome(bytes, at);
      if (got === 0) throw new Error("Espruino has ended");
      if (got !== null) {
        at += got;
        continue;
      }
      if (performance.now() > deadline) throw new Error("Espruino hangs");
      Atomics.wait(NEVER, 0, 0, pause);
      pause = Math.min(2 * pause, POLL_MS.most);
    }
    return bytes.toString("latin1");
  }

  /** The number of bytes; null if there are none yet. */
  private readSome(bytes: Buffer, at: number): number | null {
    try {
      return readSync(this.output, bytes, at, bytes.length - at, null);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return null;
      throw error;
    }
  }
}
