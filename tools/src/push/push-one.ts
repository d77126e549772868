/**
 * Pushes a device program to one agent (`system.push`, protocol/README.md): sent in parts, started
 * on trial, confirmed when the agent answers with it. If anything ends the push early, the agent
 * returns to its previous program by itself.
 */
import { createHash } from "node:crypto";
import { inSource, type SourceMap } from "@blindrelay/agent-sdk/board";
import type { Agent } from "@blindrelay/client-sdk";
import { CallError } from "@blindrelay/client-sdk";
import { nextSerial } from "@blindrelay/client-sdk/rekey";
import { Failure } from "@blindrelay/protocol/command-line";
import { asciiBytes, pushProof, toHex, utf8Bytes } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { callFailure, isPassing } from "../base/call-failure.ts";
import { UNKNOWN_METHOD } from "../base/methods.ts";
import { oneLine } from "../base/output.ts";
import { hasWatchdog, NO_WATCHDOG } from "../base/watchdog.ts";
import { shownPath } from "../config/kept-builds.ts";

const METHOD = "system.push";
/** As on the agent: the digits that identify a program. */
const ID_LENGTH = 16;
const LABEL_LENGTH = 12;
/** Time limit for one part; a board without AES takes seconds for it. */
const CALL_MS = 20_000;
/** How often to retry what a restart of the agent ended, and after what pause. */
const BEGINNINGS = 10;
/** An agent that is silent for this long is not waited for any more. */
const AWAY_MS = 30_000;
const BEGIN_AGAIN_MS = 2_000;
/** After this long the user is told that an agent, which may be asleep, is waited for. */
const PATIENCE_MS = 2_000;
/** The longest wait: as long as a timer can be. */
const ASLEEP_MS = 2_000_000_000;
const POLL_MS = 500;
const POLL_LIMIT_MS = 5_000;
/** A trial must still answer after this, so that a crash in its first timers is noticed. */
const SETTLE_MS = 3_000;
/** From the start request to the restart. */
const RESTART_MS = 10_000;

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A program in the form that one kind of agent accepts. */
export interface Pushable {
  readonly bytes: Uint8Array;
  readonly map: SourceMap;
  /** The version reported to the relay at each login; null: a label that reveals nothing. */
  readonly version: string | null;
}

/** One program, for every kind of agent. */
export interface Programs {
  /**
   * `runtime`: such as "espruino 2v29 PUCKJS"; `build`: of its engine, if it takes byte code.
   * Null: such agents accept no programs. Rejects with a Failure if it cannot run this one.
   */
  ofRuntime(runtime: string, build?: string): Promise<Pushable | null>;
}

export interface PushOptions {
  /** Length of the trial. */
  readonly seconds: number;
  /** What a device with a push key wants; null: there is none. */
  readonly pushKey: string | null;
  /** Wait without limit for an agent that is offline, for example asleep. */
  readonly waits: boolean;
  readonly progress: (done: number, total: number) => void;
  /** Called before anything is sent: the program's name on the agent, and where its source is. */
  readonly sends: (id: string, map: SourceMap) => void;
}

export interface Pushed {
  readonly id: string;
  readonly version: string;
  /** It already ran this program. */
  readonly unchanged: boolean;
}

interface Status {
  readonly id: string;
  readonly version: string;
  readonly trial: string | null;
  readonly failed: { readonly id: string; readonly reason: string } | null;
  readonly room: number;
  readonly part: number;
  /** Absent from older agents, as the next one. */
  readonly watchdog?: boolean;
  readonly serial?: number;
  /** Of the engine whose byte code it takes; absent: it takes text. */
  readonly build?: string;
}

/**
 * A name for a program that only holders of the agent's secret can make: its plain hash would let
 * the relay test guesses of the program's content.
 */
const labelOf = (sha256: string, agentToken: string): string => {
  const suite = nodeSuite();
  const key = suite.hmacKey(asciiBytes(`blindrelay|program|${sha256}`));
  return `push-${toHex(suite.hmac(key, utf8Bytes(agentToken))).slice(0, LABEL_LENGTH)}`;
};

/**
 * It has restarted since, and the stored part of the program is gone; or another push began, with
 * the same serial.
 */
const isForgotten = (error: unknown): boolean =>
  error instanceof Failure &&
  /not the next part|it is not whole|the serial must be above/.test(error.message);

/** The agent accepts no programs at all: not the fault of this one. */
export class TakesNone extends Failure {
  constructor(agentId: string, runtime: string) {
    const [kind = ""] = oneLine(runtime).split(" ");
    const other = kind === "" ? "it does not say what it runs on" : `${kind} does not support it`;
    const why = Object.hasOwn(OFF, kind) ? OFF[kind] : other;
    super("agentError", `${agentId} does not accept programs over the relay: ${why}`);
  }
}

const OFF: Readonly<Record<string, string>> = {
  espruino: "it was provisioned with --no-push, or flashed with an older SDK",
  node: "it was started without `agent run --allow-push`, or is older",
};

/** Assumed if `system.info` is too long for the shortest plaintext, which only boards have. */
const UNTOLD = { runtime: "espruino", methods: [METHOD] };

/** The number of an engine's build, hexadecimal. */
const BUILD = /^[0-9a-f]{16}$/;
/** What a device with a push key says to a proof by another one. */
const NOT_PROVEN = "not proven by its push key";

const refusal = (error: unknown, agentId: string): unknown => {
  if (!(error instanceof CallError)) return error;
  if (error.remote?.code === UNKNOWN_METHOD) return new TakesNone(agentId, UNTOLD.runtime);
  if (error.remote !== undefined) {
    const { message } = error.remote;
    const fix = message === NOT_PROVEN ? ": --push-key names another key's file" : "";
    const text = `${agentId} does not accept the program: ${oneLine(message)}${fix}`;
    return new Failure("agentError", text, error);
  }
  return callFailure(error);
};

const isStatus = (value: unknown): value is Status => {
  const { room, part, id, version } = (value ?? {}) as Partial<Status>;
  const isCounted = typeof room === "number" && Number.isInteger(part) && Number(part) > 0;
  return isCounted && typeof id === "string" && typeof version === "string";
};

export class PushedAgent {
  private readonly agentId: string;
  private readonly agent: Agent;
  private readonly agentToken: string;
  private readonly notice: (text: string) => void;
  private heardAt = performance.now();
  private waits = false;
  private runtime = UNTOLD.runtime;

  /** `notice`: called with the message that the agent is waited for. */
  constructor(agentId: string, agent: Agent, agentToken: string, notice: (text: string) => void) {
    this.agentId = agentId;
    this.agent = agent;
    this.agentToken = agentToken;
    this.notice = notice;
  }

  /** Rejects with a Failure if the program is not kept. */
  async push(programs: Programs, options: PushOptions): Promise<Pushed> {
    this.waits = options.waits;
    // Built before the agent is awake, because an agent that sleeps is online only for seconds.
    if (this.waits) await programs.ofRuntime(UNTOLD.runtime).catch(() => null);
    const { bytes, version, map } = await this.programOf(programs);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const id = sha256.slice(0, ID_LENGTH);
    options.sends(id, map);
    const named = version ?? labelOf(sha256, this.agentToken);
    const before = await this.overRestarts(() => this.status());
    if (before.id === id && before.trial === null) {
      return { id, version: oneLine(before.version), unchanged: true };
    }
    if (before.trial !== null) {
      throw this.failure("agentError", "is running another trial: try again when it has ended");
    }
    if (bytes.length > before.room) {
      throw this.failure(
        "device",
        `has no room for the program: it has ${bytes.length} bytes, and ${before.room} fit`,
      );
    }
    const isGuarded = hasWatchdog(this.runtime, before.watchdog);
    if (!isGuarded) this.notice(`${this.agentId} ${NO_WATCHDOG}`);
    const head = { size: bytes.length, sha256, version: named, seconds: options.seconds };
    const isStarted = await this.overRestarts(async () => {
      const proof = await this.prove(head, options.pushKey);
      await this.transfer(bytes, { ...head, ...proof }, before.part, options);
      return this.start();
    });
    const earlier = !isStarted && before.failed?.id === id;
    await this.watch(id, map, options.seconds, isGuarded, earlier);
    return { id, version: named, unchanged: false };
  }

  /** The form that it accepts; rejects with a TakesNone, or if it cannot run this program. */
  private async programOf(programs: Programs): Promise<Pushable> {
    const info = await this.overRestarts(() => this.info());
    const { runtime, methods } = (info ?? {}) as { runtime?: unknown; methods?: unknown };
    const takes = Array.isArray(methods) && methods.includes(METHOD);
    this.runtime = typeof runtime === "string" ? runtime : "";
    const program = takes
      ? ((await programs.ofRuntime(this.runtime)) ?? (await this.byteCodeOf(programs)))
      : null;
    if (program === null) throw new TakesNone(this.agentId, this.runtime);
    return program;
  }

  private async byteCodeOf(programs: Programs): Promise<Pushable | null> {
    const state = await this.overRestarts(() => this.ask(undefined));
    const { build } = (state ?? {}) as Partial<Status>;
    const isBuild = typeof build === "string" && BUILD.test(build);
    return isBuild ? programs.ofRuntime(this.runtime, build) : null;
  }

  private async info(): Promise<unknown> {
    try {
      return await this.call("system.info", undefined, CALL_MS);
    } catch (error) {
      if (error instanceof CallError && error.remote !== undefined) return UNTOLD;
      throw error;
    }
  }

  private failure(kind: ConstructorParameters<typeof Failure>[0], text: string): Failure {
    return new Failure(kind, `${this.agentId} ${text}`);
  }

  /** Retries if the agent was offline: a board that restarts is back within seconds. */
  private async overRestarts<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        if (this.waits) await this.awake();
        return await attempt();
      } catch (error) {
        const again = isPassing(error) || isForgotten(error);
        const isAway = performance.now() - this.heardAt > AWAY_MS;
        if (!again || isAway || tries === BEGINNINGS) throw refusal(error, this.agentId);
        if (tries === 1) this.noticeAway();
        await wait(BEGIN_AGAIN_MS);
      }
    }
  }

  private noticeAway(): void {
    this.notice(`${this.agentId} is offline: waiting for it`);
  }

  /** Resolves once it answers. */
  private async awake(): Promise<void> {
    const timer = setTimeout(() => this.noticeAway(), PATIENCE_MS);
    try {
      await this.call("system.ping", undefined, ASLEEP_MS, true);
    } finally {
      clearTimeout(timer);
    }
  }

  private async status(timeoutMs = CALL_MS): Promise<Status> {
    const status = await this.ask(undefined, timeoutMs);
    if (isStatus(status)) return status;
    throw this.failure("agentError", `answered ${METHOD} with an invalid state`);
  }

  private async ask(params: object | undefined, timeoutMs = CALL_MS): Promise<unknown> {
    try {
      return await this.call(METHOD, params, timeoutMs);
    } catch (error) {
      throw isPassing(error) ? error : refusal(error, this.agentId);
    }
  }

  /** A call that may be repeated. Any answer, even an error, shows that the agent is online. */
  private async call(
    method: string,
    params: object | undefined,
    timeoutMs: number,
    waitForAgent = false,
  ): Promise<unknown> {
    const options = { timeoutMs, idempotent: true, waitForAgent };
    try {
      const answer = await this.agent.call(method, params, options);
      this.heardAt = performance.now();
      return answer;
    } catch (error) {
      if (error instanceof CallError && error.remote !== undefined)
        this.heardAt = performance.now();
      throw error;
    }
  }

  /** The members that a device with a push key wants; it takes each serial once. */
  private async prove(
    { size, sha256 }: { readonly size: number; readonly sha256: string },
    key: string | null,
  ): Promise<object> {
    if (key === null) return {};
    const { serial: last = 0 } = await this.status();
    const serial = nextSerial(this.agentId, last);
    return { serial, proof: pushProof(nodeSuite(), key, this.agentId, serial, size, sha256) };
  }

  private async transfer(
    bytes: Uint8Array,
    head: object,
    part: number,
    { progress }: PushOptions,
  ): Promise<void> {
    await this.ask(head);
    for (let at = 0; at < bytes.length; at += part) {
      const data = Buffer.from(bytes.subarray(at, at + part)).toString("base64url");
      await this.ask({ at, data });
      progress(Math.min(at + part, bytes.length), bytes.length);
    }
  }

  /**
   * Whether it says that it starts. The answer may get lost in the restart: the program that the
   * agent then runs decides.
   */
  private async start(): Promise<boolean> {
    try {
      await this.agent.call(METHOD, { start: true }, { timeoutMs: RESTART_MS });
      return true;
    } catch (error) {
      if (!isPassing(error)) throw refusal(error, this.agentId);
      return false;
    }
  }

  /** The same again. True also if it has restarted since, so that there is nothing to start. */
  private async startAgain(): Promise<boolean> {
    try {
      return await this.start();
    } catch (error) {
      if (isForgotten(error)) return true;
      throw error;
    }
  }

  /**
   * Waits until the trial is kept. `mayBeEarlier`: it may not have been started, and has failed
   * before, which is what the agent then still says.
   */
  private async watch(
    id: string,
    map: SourceMap,
    seconds: number,
    isGuarded: boolean,
    mayBeEarlier: boolean,
  ): Promise<void> {
    const begun = performance.now();
    let isUnsure = mayBeEarlier;
    let seenAt: number | null = null;
    for (;;) {
      const status = await this.glance();
      const now = performance.now();
      if (status?.id === id && status.trial === null) return;
      if (status?.failed?.id === id && isUnsure) {
        isUnsure = !(await this.startAgain());
      } else if (status?.failed?.id === id) {
        const { reason } = status.failed as { readonly reason?: unknown };
        const why = typeof reason === "string" ? oneLine(inSource(reason, map, shownPath)) : "";
        const text = `ran it on trial and returned to the previous program: ${why}`;
        throw this.failure("expectation", text);
      }
      if (status?.trial === id) {
        seenAt ??= now;
        if (now - seenAt >= SETTLE_MS) await this.confirm(id);
      } else if (status !== null && now - begun > RESTART_MS + CALL_MS) {
        throw this.failure("timeout", "did not start it: push it again");
      }
      // The trial ends by itself; its result may be requested slightly later.
      if (now - begun > seconds * 1000 + RESTART_MS + CALL_MS) {
        const next = isGuarded
          ? "it returns to the previous program by itself"
          : `it ${NO_WATCHDOG}`;
        throw this.failure("timeout", `has not come back within ${seconds} s: ${next}`);
      }
      await wait(POLL_MS);
    }
  }

  private async confirm(id: string): Promise<void> {
    try {
      await this.ask({ confirm: id });
    } catch (error) {
      // Ask again, or the trial has ended meanwhile: its status shows it.
      if (!(error instanceof Failure) && !isPassing(error)) throw error;
    }
  }

  /** Null while it is offline. */
  private async glance(): Promise<Status | null> {
    try {
      return await this.status(POLL_LIMIT_MS);
    } catch (error) {
      if (isPassing(error)) return null;
      throw error;
    }
  }
}
