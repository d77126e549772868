/**
 * An agent in the real XS engine, as a device that stands in this process: its timers, its network
 * and its flash are handed in, so it runs on real sockets as under a virtual clock.
 */
import type { AgentStatus } from "../core/link.ts";
import type { Log, TimerPort } from "../ports.ts";
import type { MemoryPreference } from "./preference.ts";
import type { ConnectWire, Wire } from "./wire.ts";
import { answerCrypt } from "./xs-crypt.ts";
import type { Asked, Told, XsStart } from "./xs-messages.ts";
import { type Meter, XsWorker } from "./xs-worker.ts";

export interface XsDeviceOptions {
  readonly engine: string;
  /** Of deviceScript. */
  readonly script: string;
  readonly timer: TimerPort;
  readonly connect: ConnectWire;
  /** The flash: give it to the next device to be the same one after a restart. */
  readonly preference: MemoryPreference;
  readonly maxCompute: number;
  readonly maxMemoryKiB?: number;
  readonly log?: Log;
  readonly onState?: (status: AgentStatus) => void;
  /** Of an engine that failed on an event, such as a program that never returns; else it throws. */
  readonly onFailure?: (error: Error) => void;
}

const needsAes = (version: string | undefined): boolean => version === "2" || version === "4";

export class XsDevice {
  /** Of the last crank. */
  meter: Meter = { compute: 0, currentHeapCount: 0 };
  /** Steps of all cranks since this was set to 0. */
  spent = 0;
  readonly worker: XsWorker;
  private readonly options: XsDeviceOptions;
  private readonly timers = new Map<number, unknown>();
  private readonly wires = new Map<number, Wire>();
  private over = false;

  /** Loads the script. Throws if the engine does not. */
  constructor(options: XsDeviceOptions) {
    this.options = options;
    this.worker = new XsWorker({
      engine: options.engine,
      maxCompute: options.maxCompute,
      maxMemoryKiB: options.maxMemoryKiB,
      answer: (command) =>
        Buffer.from(JSON.stringify(this.answer(JSON.parse(`${command}`)) ?? null)),
    });
    this.worker.evaluate(options.script);
  }

  /** Runs more of a script: device programs that were not in the first. */
  evaluate(code: string): void {
    this.worker.evaluate(code);
  }

  /**
   * Writes the first boot count. `seed`: for packet versions "3" and "4", base64url of 32 random
   * bytes. Throws what the device throws.
   */
  provision(agentToken: string, seed?: string): void {
    this.tell({ op: "provision", agentToken, ...(seed !== undefined && { seed }) });
  }

  /**
   * Starts the program called `program`, under versions "2" and "4" with the SDK's hash and cipher.
   * Throws what the device throws.
   */
  start(options: XsStart, program: string): void {
    this.tell({ op: "start", options, program, native: needsAes(options.packetVersion) });
  }

  /** Has the agent stop itself, as a device program's owner would. */
  stop(): void {
    this.tell({ op: "stop" });
  }

  /** An event to every session held, as the device program would send it. */
  emit(event: string, data: object): void {
    this.tell({ op: "emit", event, data });
  }

  /** Sids held. */
  held(): string[] {
    return this.tell({ op: "held" }) as string[];
  }

  /** Pulls the plug: nothing of RAM is left, the flash stays. */
  async end(): Promise<void> {
    this.over = true;
    for (const handle of this.timers.values()) this.options.timer.clear(handle);
    for (const wire of this.wires.values()) wire.end();
    await this.worker.close();
  }

  private tell(told: Told): unknown {
    const { reply, meter } = this.worker.command(Buffer.from(JSON.stringify(told)));
    this.meter = meter;
    this.spent += meter.compute;
    return JSON.parse(reply.toString());
  }

  /** For what comes from outside when it likes: after the end it is not heard. */
  private event(told: Told): void {
    if (this.over) return;
    try {
      this.tell(told);
    } catch (error) {
      if (this.options.onFailure === undefined) throw error;
      this.options.onFailure(error as Error);
    }
  }

  private answer(asked: Asked): unknown {
    const { timer, preference } = this.options;
    switch (asked.op) {
      case "set": {
        const { id } = asked;
        const fire = (): void => {
          this.timers.delete(id);
          this.event({ op: "fire", id });
        };
        this.timers.set(id, timer.set(asked.ms, fire));
        return null;
      }
      case "clear":
        timer.clear(this.timers.get(asked.id));
        this.timers.delete(asked.id);
        return null;
      case "ticks":
        return Math.floor(timer.now()) | 0;
      case "get": {
        const value = preference.get(asked.domain, asked.key);
        return value === undefined ? null : Buffer.from(value).toString("base64");
      }
      case "put": {
        try {
          const bytes = Uint8Array.from(Buffer.from(asked.value, "base64"));
          preference.set(asked.domain, asked.key, bytes.buffer);
          return true;
        } catch {
          return false;
        }
      }
      case "connect":
        this.connect(asked);
        return null;
      case "write":
        this.wires
          .get(asked.id)
          ?.write(asked.opcode, asked.final, Uint8Array.from(Buffer.from(asked.payload, "base64")));
        return null;
      case "end":
        this.wires.get(asked.id)?.end();
        return null;
      case "state":
        this.options.onState?.(asked.status);
        return null;
      case "log":
        this.options.log?.(asked.level, asked.message, asked.fields);
        return null;
      case "trace":
        this.options.log?.("info", asked.text);
        return null;
      case "hmac":
      case "aes":
        return answerCrypt(asked);
    }
  }

  private connect({ id, host, port, path }: Extract<Asked, { readonly op: "connect" }>): void {
    const wire = this.options.connect(host, port, path, {
      opened: () => this.event({ op: "opened", id }),
      frame: (opcode, final, payload) =>
        this.event({
          op: "frame",
          id,
          opcode,
          final,
          payload: Buffer.from(payload).toString("base64"),
        }),
      ended: () => {
        this.wires.delete(id);
        this.event({ op: "ended", id });
      },
    });
    this.wires.set(id, wire);
  }
}
