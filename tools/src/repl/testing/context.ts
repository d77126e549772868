/** The environment of a program on the double: Espruino's globals and modules, over Node's. */
import { createCipheriv, createHash, randomInt } from "node:crypto";
import { connect, type Socket } from "node:net";
import { createContext, runInContext } from "node:vm";
import { crc32 } from "node:zlib";
import {
  IMITATE_FUNCTION,
  untokenise,
  untokeniseFunction,
} from "@blindrelay/agent-sdk/testing/untokenise";
import type { DoubleOptions } from "./options.ts";
import type { DoubleStorage } from "./storage.ts";
import { WIFI_MODULE } from "./wifi.ts";

export interface BoardContext {
  run(code: string): unknown;
  /** Ends timers and sockets, after notifying listeners for "kill". */
  kill(): void;
  /** Bytes received on Serial1 while the console is elsewhere. */
  hear(text: string): void;
}

interface Wiring {
  readonly options: DoubleOptions;
  readonly storage: DoubleStorage;
  print(text: string): void;
  /** Bytes that a program writes to Serial1. */
  write(bytes: Uint8Array): void;
  /** The console moves away from Serial1. */
  leaveConsole(): void;
  restart(how: "load" | "reset"): void;
}

const bytesOf = (data: unknown): Buffer =>
  typeof data === "string"
    ? Buffer.from(data, "latin1")
    : data instanceof ArrayBuffer || Object.prototype.toString.call(data) === "[object ArrayBuffer]"
      ? Buffer.from(data as ArrayBuffer)
      : Buffer.from(data as Uint8Array);

const exactBuffer = (bytes: Buffer): ArrayBuffer =>
  bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;

const hash = (name: string) => (data: unknown) =>
  exactBuffer(createHash(name).update(bytesOf(data)).digest());

const AES = {
  encrypt: (data: unknown, key: unknown, how: { mode: string; iv?: unknown }) => {
    const bytes = bytesOf(key);
    const name = `aes-${bytes.length * 8}-${how.mode.toLowerCase()}`;
    const iv = how.mode === "ECB" ? null : bytesOf(how.iv ?? new Uint8Array(16));
    const cipher = createCipheriv(name, bytes, iv).setAutoPadding(false);
    return exactBuffer(Buffer.concat([cipher.update(bytesOf(data)), cipher.final()]));
  },
};

const makeNet = (sockets: Set<Socket>) => ({
  connect: (target: { host: string; port: number }, connected: () => void) => {
    const socket = connect(target, () => connected());
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    return {
      on: (event: string, listener: (value?: unknown) => void) => {
        socket.on(event, (value: unknown) =>
          listener(event === "data" ? (value as Buffer).toString("latin1") : value),
        );
      },
      write: (data: string) => socket.write(Buffer.from(data, "latin1")),
      end: () => socket.end(),
    };
  },
});

const MODULE_BEGINS = "(function(module,exports){";

/** The lines of the trace that name a file in Storage. */
const framesOf = (thrown: unknown): string[] =>
  String((thrown as Error | null)?.stack)
    .split("\n")
    .filter((line) => /^ {4}at .*\bprogram(\.1)?:\d+:\d+\)?$/.test(line));

export const makeContext = (wiring: Wiring): BoardContext => {
  const { options, storage, print, restart } = wiring;
  let listeners: ((text: string) => void)[] = [];
  const serial = {
    setup: () => undefined,
    on: (_event: string, fn: (text: string) => void) => listeners.push(fn),
    removeAllListeners: () => {
      listeners = [];
    },
    write: (bytes: unknown) => wiring.write(bytesOf(bytes)),
  };
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  const killed: (() => void)[] = [];
  const uncaught: ((error: unknown) => void)[] = [];
  const tellUncaught = (error: unknown): void => {
    try {
      if (uncaught.length === 0) throw error;
      for (const fn of uncaught) fn(error);
    } catch (left) {
      print(`Uncaught ${String(left)}`);
      for (const frame of framesOf(left)) print(frame);
    }
  };
  const guard = (fn: () => void) => () => {
    try {
      fn();
    } catch (error) {
      tellUncaught(error);
    }
  };
  const builtIn: Record<string, unknown> = {
    Storage: storage,
    crypto: {
      SHA1: hash("sha1"),
      ...(options.sha256 ? { SHA256: hash("sha256") } : {}),
      ...(options.aes ? { AES } : {}),
    },
    net: makeNet(sockets),
  };
  const cached = new Map<string, unknown>();
  const show = (value: unknown): string =>
    typeof value === "object" ? JSON.stringify(value) : String(value);
  const printAll = (...values: unknown[]): void => print(values.map(show).join(" "));
  const clear = (timer: NodeJS.Timeout): void => {
    timers.delete(timer);
    clearTimeout(timer);
  };
  const keep = (timer: NodeJS.Timeout): NodeJS.Timeout => {
    timers.add(timer);
    return timer;
  };
  const addCached = (name: string, code: string): unknown => {
    const module = { exports: {} };
    const text = `${MODULE_BEGINS}${untokenise(code)}\n})`;
    // As the engine names places in it.
    const named = { filename: name, columnOffset: -MODULE_BEGINS.length };
    const load = runInContext(text, context, named) as (module: object, exports: object) => void;
    load(module, module.exports);
    cached.set(name, module.exports);
    return module.exports;
  };
  const globals = {
    print: printAll,
    console: { log: printAll },
    process: {
      env: {
        VERSION: options.version,
        BOARD: options.board,
        SERIAL: "0001",
        MODULES: [...Object.keys(builtIn), ...(options.air === null ? [] : ["Wifi"])].join(","),
      },
      memory: () => ({
        free: options.variables - 1000,
        total: options.variables,
        usage: 1000,
        blocksize: 16,
      }),
      on: (_event: "uncaughtException", fn: (error: unknown) => void) => uncaught.push(fn),
    },
    E: {
      CRC32: (data: unknown) => crc32(bytesOf(data)),
      toUint8Array: (data: unknown) => new Uint8Array(bytesOf(data)),
      hwRand: () => randomInt(2 ** 31),
      on: (event: string, fn: () => void) => {
        if (event === "kill") killed.push(fn);
      },
      enableWatchdog: () => {
        if (!options.watchdog) throw new Error("Timeout on LSI ready");
      },
      kickWatchdog: () => undefined,
      getConsole: () => (options.uart ? "Serial1" : "USB"),
      setConsole: (device: string | null) => {
        if (options.uart && device !== "Serial1") wiring.leaveConsole();
      },
    },
    digitalWrite: () => undefined,
    LED1: "LED1",
    global: { ...(options.uart ? { Serial1: serial } : {}), air: options.air },
    atob: (text: string) => Buffer.from(text, "base64").toString("latin1"),
    btoa: (data: unknown) => bytesOf(data).toString("base64"),
    getTime: () => performance.now() / 1000,
    getSerial: () => "0001",
    setTimeout: (fn: () => void, ms: number) => keep(setTimeout(guard(fn), ms)),
    setInterval: (fn: () => void, ms: number) => keep(setInterval(guard(fn), ms)),
    clearTimeout: clear,
    clearInterval: clear,
    load: () => restart("load"),
    reset: () => restart("reset"),
    require: (name: string): unknown => {
      if (name in builtIn) return builtIn[name];
      if (cached.has(name)) return cached.get(name);
      const code = storage.read(name);
      if (code === undefined) throw new Error(`Module ${name} not found`);
      return addCached(name, code);
    },
    eval: (code: string) => runInContext(untokenise(code), context),
    Modules: {
      // A function's text is evaluated as a module.
      addCached: (name: string, code: unknown) =>
        void addCached(name, `${code}`.replace(/^function\(\)\{([\s\S]*)\}$/, "$1")),
    },
  };
  const context = createContext({ ...globals, hostFunction: untokeniseFunction });
  runInContext(IMITATE_FUNCTION, context);
  if (options.air !== null) addCached("Wifi", WIFI_MODULE);
  return {
    run: (code) => runInContext(code, context),
    hear: (text) => {
      for (const fn of listeners) guard(() => fn(text))();
    },
    kill: () => {
      for (const fn of killed) guard(fn)();
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
    },
  };
};
