/**
 * The subset check: the built file in a `node:vm` from which built-ins that Espruino lacks are gone
 * and in which lenient ones are as lenient, over real sockets and Node's ciphers. It catches what
 * the file must not rely on. It is not a test on Espruino: most of what that engine does wrongly in
 * silence (docs/runtimes.md) cannot be imitated; dialect.ts and the tests on the real engine see to it.
 */
import { type Context, createContext, runInContext } from "node:vm";
import { espruinoCrypto, espruinoGlobals } from "./espruino-natives.ts";
import { espruinoNet } from "./espruino-net.ts";
import { parseLeniently } from "./lenient-json.ts";

const MISSING = `Map Set WeakMap WeakSet WeakRef FinalizationRegistry Symbol Proxy Reflect BigInt
  BigInt64Array BigUint64Array SharedArrayBuffer Atomics RangeError URIError AggregateError
  Intl globalThis WebAssembly escape unescape Iterator Math.imul Math.trunc Math.log2 Math.clz32
  Object.freeze Object.isFrozen Array.from Array.of Array.prototype.flat Array.prototype.flatMap
  Array.prototype.at String.prototype.at String.prototype.codePointAt String.prototype.normalize
  String.prototype.matchAll String.prototype.replaceAll String.prototype.localeCompare
  Number.isInteger Number.MAX_SAFE_INTEGER Promise.race Promise.any Promise.allSettled
  Promise.prototype.finally ArrayBuffer.isView ArrayBuffer.prototype.slice`.split(/\s+/);

/** What runs inside, to change the context's own built-ins. */
const IMITATE = `
  const TypedArray = Object.getPrototypeOf(Uint8Array);
  delete TypedArray.from; delete TypedArray.of;
  const toArray = Array.prototype.slice;
  TypedArray.prototype.slice = function (a, b) { return toArray.call(this, a, b); };
  const fromCharCode = String.fromCharCode;
  String.fromCharCode = function () {
    let text = "";
    for (const code of arguments) text += fromCharCode(code & 255);
    return text;
  };
  const stringify = JSON.stringify;
  JSON.stringify = function (value) {
    const text = stringify(value);
    return text && text.replace(/[\\u007f-\\uffff]/g, (c) => "\\\\u" + ("000" + c.charCodeAt(0).toString(16)).slice(-4));
  };
  const parse = hostParse, plain = JSON.parse;
  JSON.parse = (text) => parse(String(text));
  const bytes = E.toUint8Array;
  E.toUint8Array = (text) => new Uint8Array(bytes(text));
`;

type Exports = Record<string, (...given: never[]) => unknown>;

/** One life of a board: from power-up to `powerOff`. */
export class SubsetBoard {
  private readonly context: Context;
  private readonly files: Map<string, string>;
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly loaded = new Map<string, unknown>();
  private readonly sockets = new Set<{ end(): void }>();

  /** `files`: the board's Storage, which outlives it. */
  constructor(files: Map<string, string>) {
    this.files = files;
    const globals = espruinoGlobals();
    this.context = createContext({
      ...globals,
      hostParse: parseLeniently,
      E: { ...globals.E, hwRand: () => 0x12345678, on: () => {}, defrag: () => {} },
      process: {
        env: { BOARD: "SUBSET", VERSION: "2v29" },
        memory: () => ({ free: 4000, total: 5000, blocksize: 16 }),
      },
      console: { log: () => {} },
      getTime: () => Date.now() / 1000,
      getSerial: () => "subset",
      setTimeout: (fn: () => void, ms: number) => this.setTimer(fn, ms),
      clearTimeout: (timer: NodeJS.Timeout | undefined) => this.clearTimer(timer),
      require: (name: string) => this.require(name),
    });
    runInContext(IMITATE, this.context);
    for (const path of MISSING) runInContext(`delete ${path}`, this.context);
  }

  /** A built-in module, or one that lies in Storage. */
  require(name: string): unknown {
    const known = this.loaded.get(name) ?? this.load(name);
    this.loaded.set(name, known);
    return known;
  }

  /** Runs an expression on the board. */
  evaluate(code: string): unknown {
    return runInContext(code, this.context);
  }

  /** As a power cut: no timer and no socket goes on. */
  powerOff(): void {
    for (const timer of this.timers) clearTimeout(timer);
    for (const socket of this.sockets) {
      try {
        socket.end();
      } catch {
        // Gone already.
      }
    }
  }

  private load(name: string): unknown {
    if (name === "Storage") {
      return {
        read: (file: string) => this.files.get(file),
        write: (file: string, text: string) => this.files.set(file, String(text)) !== undefined,
      };
    }
    if (name === "crypto") return espruinoCrypto();
    if (name === "net") return this.net();
    const code = this.files.get(name);
    if (code === undefined) throw new Error(`Module "${name}" not found`);
    const exports: Exports = {};
    const run = runInContext(`(function (exports, module) {${code}\n})`, this.context);
    (run as (exports: Exports, module: object) => void)(exports, {});
    return exports;
  }

  private net() {
    const net = espruinoNet();
    return {
      connect: (target: { host: string; port: number }, connected: () => void) => {
        const socket = net.connect(target, connected);
        this.sockets.add(socket);
        return socket;
      },
    };
  }

  private setTimer(fn: () => void, ms: number): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      fn();
    }, ms);
    this.timers.add(timer);
    return timer;
  }

  private clearTimer(timer: NodeJS.Timeout | undefined): void {
    if (timer === undefined) throw new Error("clearTimeout(undefined) not allowed");
    this.timers.delete(timer);
    clearTimeout(timer);
  }
}
