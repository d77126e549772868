/**
 * What a device program sees: `export default (agent) => { agent.handle("led.set", …); }`. It is
 * the same object on a board, on Node and in the simulator, so it provides everything that a
 * program needs from its runtime: time, randomness, a log.
 *
 * [portable]
 */
import type { Log, Random, TimerPort } from "../ports.ts";
import type { Handler } from "./dispatch.ts";
import { reasonOf } from "./dispatch.ts";
import type { DeviceStorage } from "./storage.ts";

/** A device program: registers its methods and timers on the agent passed to it. */
export type Program = (agent: Agent) => void;

/**
 * A part of the SDK that not every device needs, such as Streams. It has its own notifications
 * within the sessions, and a board that does not use it does not contain its code.
 */
export interface SessionPart {
  /** The reserved method names that it handles. */
  readonly methods: readonly string[];
  receive(method: string, params: unknown, sid: string): void;
  /** Packets of this session are missing, or the session is over. null: all sessions are over. */
  lost(sid: string | null, reason: string): void;
}

/** What a part can use. */
export interface SessionWiring {
  /** Maximum size of one plaintext, in bytes. */
  readonly maxPlaintext: number;
  /** Seals ASCII JSON for a session; false if it cannot be sent now. */
  send(sid: string, text: string): boolean;
  /** When its last packet was verified, by the timer's clock; null if it is not held. */
  heardAt(sid: string): number | null;
}

/** Why a session ended whose client said `system.close`. */
export const CLIENT_LEFT = "the client left";

/** The parts of the core that a program uses through its agent. */
interface AgentParts {
  readonly ports: { readonly log: Log; readonly random: Random; readonly timer: TimerPort };
  readonly dispatcher: { handle(method: string, handler: Handler): void };
  emit(event: string, data: unknown): number;
  attach(part: SessionPart): SessionWiring;
}

interface ProgramTimer {
  handle: unknown;
  live: boolean;
}

export class Agent {
  /** `agent_id` on the relay. */
  declare readonly id: string;
  /** A name for people; defaults to `agent_id`. */
  declare readonly name: string;
  /** Writes a line to the device's log. */
  declare readonly log: Log;
  /** Random bytes from the board's generator; reproducible from the seed in the simulator. */
  declare readonly random: Random;
  /**
   * Keeps texts over restarts (storage.ts). Each edge adds it; a build for boards has it only if
   * its program uses it.
   */
  declare readonly storage: DeviceStorage;
  /**
   * Shows a simulator what the program holds, under a name, for what it promises about it
   * (`invariants:` of a scenario). Elsewhere it does nothing. Added with the storage.
   */
  declare expose: (name: string, read: () => unknown) => void;
  declare private readonly parts: AgentParts;
  declare private timers: ProgramTimer[];

  constructor(id: string, name: string, parts: AgentParts) {
    this.id = id;
    this.name = name;
    this.log = parts.ports.log;
    this.random = parts.ports.random;
    this.parts = parts;
    this.timers = [];
  }

  /** Answers a method; see Handler. Throws for a name that is empty, reserved or taken. */
  handle(method: string, handler: Handler): void {
    this.parts.dispatcher.handle(method, handler);
  }

  /**
   * Sends a notification to every open session, and returns how many received it. `data`: an
   * object, an array, or absent. Throws for other data and for events that do not fit into one
   * packet. Clients without a session at that moment do not receive it.
   */
  emit(event: string, data?: object): number {
    return this.parts.emit(event, data);
  }

  /** For parts of the SDK: attaches one to this agent. Throws if its method names are taken. */
  attach(part: SessionPart): SessionWiring {
    return this.parts.attach(part);
  }

  /** Milliseconds of a monotonic clock. */
  now(): number {
    return this.parts.ports.timer.now();
  }

  /**
   * Calls `fn` every `ms` milliseconds until the returned function is called or the agent stops.
   */
  every(ms: number, fn: () => void): () => void {
    return this.schedule(ms, fn, true);
  }

  /** Calls `fn` once after `ms` milliseconds, unless the returned function is called first. */
  after(ms: number, fn: () => void): () => void {
    return this.schedule(ms, fn, false);
  }

  /** Cancels every timer. Called by the core when it stops. */
  stopTimers(): void {
    for (const timer of this.timers) this.cancel(timer);
    this.timers = [];
  }

  private schedule(ms: number, fn: () => void, again: boolean): () => void {
    if (!(ms >= 0) || (again && ms === 0)) throw new Error(`a timer of ${ms} ms`);
    const timer: ProgramTimer = { handle: null, live: true };
    const fire = (): void => {
      if (again) timer.handle = this.parts.ports.timer.set(ms, fire);
      else this.drop(timer);
      try {
        fn();
      } catch (thrown) {
        const reason = { reason: reasonOf(thrown) };
        this.log("error", "a timer of the device program failed", reason, thrown);
      }
    };
    timer.handle = this.parts.ports.timer.set(ms, fire);
    this.timers.push(timer);
    return () => this.drop(timer);
  }

  private drop(timer: ProgramTimer): void {
    this.cancel(timer);
    this.timers = this.timers.filter((other) => other.live);
  }

  private cancel(timer: ProgramTimer): void {
    if (timer.live) this.parts.ports.timer.clear(timer.handle);
    timer.live = false;
  }
}
