/**
 * The subset check: runs the built file in a `node:vm` without the built-ins that Espruino lacks
 * and with lenient versions of others, with Node's ciphers, and over real sockets unless given a
 * different network. It detects what the file must not rely on. It is not a test on Espruino: most
 * of what that engine does wrongly without an error (docs/espruino.md) cannot be imitated;
 * built-file-dialect.ts and the tests on the real engine cover that.
 */
import { type Context, createContext, runInContext, Script } from "node:vm";
import type { EspruinoSocket, EspruinoSockets, EspruinoStorage } from "../espruino/board.ts";
import type { TimerPort } from "../ports.ts";
import type { EspruinoSerial } from "../serial/espruino.ts";
import { EspruinoFlash } from "./espruino-flash.ts";
import { espruinoCrypto, espruinoGlobals } from "./espruino-natives.ts";
import { espruinoNet } from "./espruino-net.ts";
import type { SubsetUart } from "./espruino-uart.ts";
import { parseLeniently, stringifyLeniently } from "./lenient-json.ts";
import { IMITATE_FUNCTION, untokenise, untokeniseFunction } from "./untokenise.ts";

const MISSING = `Map Set WeakMap WeakSet WeakRef FinalizationRegistry Symbol Proxy Reflect BigInt
  BigInt64Array BigUint64Array SharedArrayBuffer Atomics RangeError URIError AggregateError
  Intl globalThis WebAssembly escape unescape Iterator Math.imul Math.trunc Math.log2 Math.clz32
  Object.freeze Object.isFrozen Array.from Array.of Array.prototype.flat Array.prototype.flatMap
  Array.prototype.at String.prototype.at String.prototype.codePointAt String.prototype.normalize
  String.prototype.matchAll String.prototype.replaceAll String.prototype.localeCompare
  Number.isInteger Number.MAX_SAFE_INTEGER Promise.race Promise.any Promise.allSettled
  Promise.prototype.finally ArrayBuffer.isView ArrayBuffer.prototype.slice`.split(/\s+/);

/** Runs inside, to change the context's own built-ins. */
const IMITATE = `
  const TypedArray = Object.getPrototypeOf(Uint8Array);
  delete TypedArray.from; delete TypedArray.of;
  const toArray = Array.prototype.slice;
  TypedArray.prototype.slice = function (a, b) { return toArray.call(this, a, b); };
  const split = String.prototype.split;
  String.prototype.split = function (by) { return by.length > this.length + 1 ? [] : split.call(this, by); };
  const fromCharCode = String.fromCharCode;
  String.fromCharCode = function () {
    let text = "";
    for (const code of arguments) text += fromCharCode(code & 255);
    return text;
  };
  JSON.stringify = function (value) {
    const text = hostStringify(value);
    return text && text.replace(/[\\u007f-\\uffff]/g, (c) => "\\\\u" + ("000" + c.charCodeAt(0).toString(16)).slice(-4));
  };
  const parse = hostParse, plain = JSON.parse;
  JSON.parse = (text) => parse(String(text));
  const bytes = E.toUint8Array;
  E.toUint8Array = (text) => new Uint8Array(bytes(text));
`;

/** The environment of a board. */
export interface Surroundings {
  readonly timer: TimerPort;
  readonly net: EspruinoSockets;
  /** In place of a flash that never loses power. */
  readonly storage: EspruinoStorage;
  /** Its Serial1. */
  readonly uart: SubsetUart | null;
  /** Lines on its console. */
  readonly print: (line: string) => void;
  /** Variables that are free. */
  readonly free: () => number;
  /** Called after `load()`, or by the watchdog: this board has ended. */
  readonly restart: () => void;
  /** Seconds that its watchdog can count to; 0: it has none. */
  readonly watchdogSeconds: number;
}

/** The network by default. */
const REAL: Omit<Surroundings, "storage"> = {
  uart: null,
  timer: {
    now: () => Date.now(),
    set: (ms, fn) => setTimeout(fn, ms),
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  },
  net: espruinoNet(),
  print: () => {},
  free: () => 4000,
  restart: () => {},
  watchdogSeconds: 26,
};

/** The engine's TIMER_MIN_INTERVAL. */
const MIN_DELAY_MS = 0.1;

/** Evaluating anything runs the promise jobs that wait in the context. */
const JOBS = new Script("0");

/** A board from power-up to `powerOff`. */
export class SubsetBoard {
  private readonly context: Context;
  private readonly surroundings: Surroundings;
  private readonly timers = new Set<unknown>();
  private readonly loaded = new Map<string, unknown>();
  private readonly sockets = new Set<EspruinoSocket>();
  private readonly killed: (() => void)[] = [];
  private readonly flagged: ((flags: readonly string[]) => void)[] = [];
  private readonly uncaught: ((thrown: unknown) => void)[] = [];
  private isOff = false;
  private isHung = false;
  private isBooting = false;
  private isLoading = false;
  /** What the watchdog waits for; null: it is not armed. */
  private watchdog: { readonly isAuto: boolean; readonly ms: number; handle: unknown } | null =
    null;

  /** `files`: the board's flash, which outlives it. */
  constructor(files: Map<string, string>, surroundings: Partial<Surroundings> = {}) {
    this.surroundings = { ...REAL, storage: new EspruinoFlash(files), ...surroundings };
    const globals = espruinoGlobals();
    const { uart } = this.surroundings;
    this.context = createContext(
      {
        ...globals,
        hostParse: parseLeniently,
        hostFunction: untokeniseFunction,
        hostStringify: stringifyLeniently,
        E: {
          ...globals.E,
          hwRand: () => 0x12345678,
          on: (event: string, fn: () => void) => {
            if (event === "kill") this.killed.push(fn);
            if (event === "errorFlag") this.flagged.push(fn);
          },
          defrag: () => {},
          ...(this.surroundings.watchdogSeconds === 0 ? {} : this.watchdogFunctions()),
          getConsole: () => uart?.console ?? null,
          setConsole: (device: string | null) => uart?.moveConsole(device),
        },
        global: uart === null ? {} : { Serial1: this.serial(uart) },
        process: {
          env: { BOARD: "SUBSET", VERSION: "2v29" },
          memory: () => ({ free: this.surroundings.free(), total: 5000, blocksize: 16 }),
          on: (_event: "uncaughtException", fn: (thrown: unknown) => void) =>
            this.uncaught.push(fn),
        },
        console: { log: (line: string) => this.surroundings.print(line) },
        getTime: () => this.surroundings.timer.now() / 1000,
        getSerial: () => "subset",
        setTimeout: (fn: () => void, ms: number) => this.setTimer(fn, ms),
        setInterval: (fn: () => void, ms: number) => this.setTimer(fn, ms, true),
        clearTimeout: (handle: unknown) => this.clearTimer(handle),
        load: () => {
          this.isLoading = true;
        },
        require: (name: string) => this.require(name),
        eval: (code: string) => this.evaluate(untokenise(code)),
        Modules: { addCached: (name: string, code: string) => this.addModule(name, code) },
      },
      // Promise jobs run when the board's turn ends, as on Espruino, and not when Node's does.
      { microtaskMode: "afterEvaluate" },
    );
    runInContext(IMITATE_FUNCTION, this.context);
    runInContext(IMITATE, this.context);
    for (const path of MISSING) runInContext(`delete ${path}`, this.context);
  }

  /** A built-in module, or one in Storage. */
  require(name: string): unknown {
    const known = this.loaded.get(name) ?? this.load(name);
    this.loaded.set(name, known);
    return known;
  }

  /** Runs an expression on the board. */
  evaluate(code: string): unknown {
    return runInContext(code, this.context);
  }

  /** Runs what Storage has for the start, in which `load()` has no effect. */
  boot(): void {
    this.isBooting = true;
    this.turn(() => this.evaluate(this.surroundings.storage.read(".bootcde") as string));
    this.isBooting = false;
  }

  /** A turn has run out of memory, which freed some of it. */
  starve(): void {
    this.turn(() => {
      for (const fn of this.flagged) fn(["MEMORY"]);
    });
  }

  /** From now on it does not end its turn, as in an endless loop. */
  hang(): void {
    this.isHung = true;
  }

  /** As `reset()`: nothing of what ran is left, except the watchdog. */
  reset(): void {
    for (const fn of this.killed) {
      try {
        fn();
      } catch (thrown) {
        this.surroundings.print(`Uncaught ${thrown}`);
      }
    }
    this.forget();
  }

  /** Simulates a power cut: timers and sockets stop, and no event arrives. */
  powerOff(): void {
    this.isOff = true;
    if (this.watchdog !== null) this.surroundings.timer.clear(this.watchdog.handle);
    this.forget();
  }

  private forget(): void {
    for (const handle of this.timers) this.surroundings.timer.clear(handle);
    for (const socket of this.sockets) {
      try {
        socket.end();
      } catch {
        // Already gone.
      }
    }
  }

  /** A turn of the board: one event from outside, and the promise jobs that result. */
  private turn(act: () => void): void {
    if (this.isOff || this.isHung) return;
    try {
      act();
    } catch (thrown) {
      if (this.uncaught.length === 0) throw thrown;
      this.report(thrown);
    } finally {
      JOBS.runInContext(this.context);
    }
    const loads = this.isLoading && !this.isBooting;
    this.isLoading = false;
    if (!loads) return;
    this.reset();
    this.surroundings.restart();
  }

  private report(thrown: unknown): void {
    try {
      for (const fn of this.uncaught) fn(thrown);
    } catch (again) {
      this.surroundings.print(`Uncaught ${again}`);
    }
  }

  private watchdogFunctions(): object {
    return {
      enableWatchdog: (seconds: number, isAuto: boolean) => this.armWatchdog(seconds, isAuto),
      kickWatchdog: () => this.feedWatchdog(),
    };
  }

  private armWatchdog(seconds: number, isAuto: boolean): void {
    if (seconds > this.surroundings.watchdogSeconds) {
      throw new Error("Maximum watchdog timeout exceeded");
    }
    if (this.watchdog !== null) this.surroundings.timer.clear(this.watchdog.handle);
    this.watchdog = { isAuto, ms: seconds * 1000, handle: null };
    this.feedWatchdog();
  }

  private feedWatchdog(): void {
    const { watchdog } = this;
    if (watchdog === null) return;
    const { timer, restart } = this.surroundings;
    timer.clear(watchdog.handle);
    watchdog.handle = timer.set(watchdog.ms, () => {
      if (watchdog.isAuto && !this.isHung) this.feedWatchdog();
      else restart();
    });
  }

  private load(name: string): unknown {
    if (name === "Storage") return this.surroundings.storage;
    if (name === "crypto") return espruinoCrypto();
    if (name === "net") return this.net();
    const code = this.surroundings.storage.read(name);
    if (code === undefined) throw new Error(`Module "${name}" not found`);
    return this.addModule(name, code);
  }

  private addModule(name: string, code: string): unknown {
    const module: { exports: unknown } = { exports: {} };
    const text = `(function (exports, module) {${untokenise(code)}\n})`;
    const run = runInContext(text, this.context) as (exports: unknown, module: object) => void;
    run(module.exports, module);
    this.loaded.set(name, module.exports);
    return module.exports;
  }

  private serial(uart: SubsetUart): EspruinoSerial {
    return {
      setup: () => uart.setup(),
      on: (event, listener) => uart.on(event, (text) => this.turn(() => listener(text))),
      removeAllListeners: () => uart.removeAllListeners(),
      write: (bytes) => uart.write(bytes),
    };
  }

  private net(): EspruinoSockets {
    return {
      connect: (target, connected) => {
        const socket = this.surroundings.net.connect(target, () => this.turn(connected));
        this.sockets.add(socket);
        return {
          on: (event: string, listener: (value: never) => void) =>
            socket.on(event as "data", (value) => this.turn(() => listener(value as never))),
          write: (data) => socket.write(data),
          end: () => socket.end(),
        };
      },
    };
  }

  private setTimer(fn: () => void, ms: number, repeats = false): unknown {
    const handle = this.surroundings.timer.set(Math.max(ms, MIN_DELAY_MS), () => {
      this.timers.delete(handle);
      if (repeats) this.setTimer(fn, ms, true);
      this.turn(fn);
    });
    this.timers.add(handle);
    return handle;
  }

  private clearTimer(handle: unknown): void {
    if (handle === undefined) throw new Error("clearTimeout(undefined) not allowed");
    this.timers.delete(handle);
    this.surroundings.timer.clear(handle);
  }
}
