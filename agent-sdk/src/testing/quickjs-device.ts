/**
 * An agent in QuickJS, as a device inside this process. This file is the host that src/embedded
 * requires; a program in C does the same with JS_NewCFunction and JS_Call.
 */
import { createCipheriv, createHmac } from "node:crypto";
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSWASMModule,
} from "quickjs-emscripten-core";
import type { AgentStatus } from "../core/link.ts";
import type { HostEvents } from "../embedded/index.ts";
import type { Link, LinkPort, Log, LogLevel, Random, StoragePort, TimerPort } from "../ports.ts";
import type { QuickjsStart } from "./quickjs/main.ts";

interface QuickjsDeviceOptions {
  readonly engine: QuickJSWASMModule;
  /** The result of quickjsScript. */
  readonly script: string;
  readonly timer: TimerPort;
  readonly link: LinkPort;
  readonly random: Random;
  /** Pass it to the next device to simulate a restart of the same one. */
  readonly storage: StoragePort;
  readonly log?: Log;
  readonly onState?: (status: AgentStatus) => void;
}

/** Limits above which the engine terminates a device: its heap, and loop iterations per call. */
const MEMORY_BYTES = 2 ** 20;
const STACK_BYTES = 256 * 1024;
const MAX_INTERRUPTS = 20_000;

/** The engine itself; one serves any number of devices. */
export const loadQuickjs = (): Promise<QuickJSWASMModule> =>
  newQuickJSWASMModuleFromVariant(import("@jitl/quickjs-wasmfile-release-sync"));

const encrypt = (key: string, blocks: string): string => {
  const cipher = createCipheriv("aes-128-ecb", Buffer.from(key, "hex"), null);
  return cipher.setAutoPadding(false).update(blocks, "hex", "hex");
};

export class QuickjsDevice {
  private readonly options: QuickjsDeviceOptions;
  private readonly runtime: QuickJSRuntime;
  private readonly context: QuickJSContext;
  private readonly device: QuickJSHandle;
  private readonly timers = new Map<number, unknown>();
  private readonly links = new Map<number, Link>();
  private interrupts = 0;
  private over = false;

  /** Loads the script. Throws if the engine does. */
  constructor(options: QuickjsDeviceOptions) {
    this.options = options;
    this.runtime = options.engine.newRuntime();
    this.runtime.setMemoryLimit(MEMORY_BYTES);
    this.runtime.setMaxStackSize(STACK_BYTES);
    this.runtime.setInterruptHandler(() => ++this.interrupts > MAX_INTERRUPTS);
    this.context = this.runtime.newContext();
    this.addHost();
    this.context.unwrapResult(this.context.evalCode(options.script)).dispose();
    this.device = this.context.getProp(this.context.global, "device");
  }

  /** Writes the first boot count, with this seed. Throws what the device throws. */
  provision(agentToken: string, seed = ""): void {
    this.call("provision", agentToken, seed);
  }

  /** Starts the program called `program`. Throws what the device throws. */
  start(options: QuickjsStart, program: string): void {
    this.call("start", JSON.stringify(options), program);
  }

  /** An event to every held session, as the device program would send it. */
  emit(event: string, data: object): void {
    this.call("emit", event, JSON.stringify(data));
  }

  /** The failures for this file of protocol/vectors. */
  checkVectors(field: string, text: string): string[] {
    return JSON.parse(this.call("vectors", field, text));
  }

  /** Cuts the power: RAM is lost, storage stays. */
  end(): void {
    if (this.over) return;
    this.over = true;
    for (const handle of this.timers.values()) this.options.timer.clear(handle);
    for (const link of this.links.values()) link.close(1000, "");
    this.device.dispose();
    this.context.dispose();
    this.runtime.dispose();
  }

  /** For events from outside, which may come at any time: after the end they are ignored. */
  private event<Name extends keyof HostEvents>(name: Name, ...args: Parameters<HostEvents[Name]>) {
    if (!this.over) this.call(name, ...args);
  }

  private call(name: string, ...args: readonly (string | number)[]): string {
    const { context } = this;
    this.interrupts = 0;
    const handles = args.map((arg) =>
      typeof arg === "string" ? context.newString(arg) : context.newNumber(arg),
    );
    const fn = context.getProp(this.device, name);
    try {
      const result = context.callFunction(fn, context.undefined, ...handles);
      if (result.error) throw new Error(result.error.consume(context.dump).message);
      this.runtime.executePendingJobs().dispose();
      return String(result.value.consume(context.dump));
    } finally {
      fn.dispose();
      for (const handle of handles) handle.dispose();
    }
  }

  private addHost(): void {
    const { context } = this;
    const { timer, random, storage, log, onState } = this.options;
    const text = (handle: QuickJSHandle | undefined): string =>
      context.getString(handle as QuickJSHandle);
    const number = (handle: QuickJSHandle | undefined): number =>
      context.getNumber(handle as QuickJSHandle);
    const functions: { [name: string]: (...args: QuickJSHandle[]) => QuickJSHandle | undefined } = {
      now: () => context.newNumber(timer.now()),
      setTimer: (id, ms) => {
        const own = number(id);
        const fire = (): void => {
          this.timers.delete(own);
          this.event("fired", own);
        };
        this.timers.set(own, timer.set(number(ms), fire));
        return undefined;
      },
      clearTimer: (id) => {
        timer.clear(this.timers.get(number(id)));
        this.timers.delete(number(id));
        return undefined;
      },
      random: (length) => context.newString(Buffer.from(random(number(length))).toString("hex")),
      read: (name) => {
        const value = storage.read(text(name));
        return value === null ? context.null : context.newString(value);
      },
      write: (name, value) => {
        storage.write(text(name), text(value));
        return undefined;
      },
      connect: (id, url) => {
        this.connect(number(id), text(url));
        return undefined;
      },
      send: (id, message) => {
        this.links.get(number(id))?.send(text(message));
        return undefined;
      },
      close: (id, code, reason) => {
        this.links.get(number(id))?.close(number(code), text(reason));
        return undefined;
      },
      log: (level, line) => {
        log?.(text(level) as LogLevel, text(line));
        return undefined;
      },
      hmac: (key, data) =>
        context.newString(
          createHmac("sha256", Buffer.from(text(key), "hex"))
            .update(text(data), "hex")
            .digest("hex"),
        ),
      aes: (key, blocks) => context.newString(encrypt(text(key), text(blocks))),
      state: (status) => {
        onState?.(JSON.parse(text(status)));
        return undefined;
      },
    };
    const host = context.newObject();
    for (const [name, fn] of Object.entries(functions)) {
      context.newFunction(name, fn).consume((handle) => context.setProp(host, name, handle));
    }
    context.setProp(context.global, "host", host);
    host.dispose();
  }

  private connect(id: number, url: string): void {
    const { link } = this.options;
    this.links.set(
      id,
      link.connect(url, {
        opened: () => this.event("opened", id),
        received: (message) => this.event("received", id, message),
        closed: (code, reason) => {
          this.links.delete(id);
          this.event("closed", id, code, reason);
        },
      }),
    );
  }
}
