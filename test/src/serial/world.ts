/** `attach` and a raw bridge, with their streams, sessions and a link between that is lost. */

import { randomBytes } from "node:crypto";
import {
  type Access,
  NO_STATUS,
  type OpenPort,
  RawLine,
  RawPort,
  RawProgram,
} from "@blindrelay/agent-sdk/bridge";
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import type { Agent as BridgeAgent, SessionPart } from "@blindrelay/agent-sdk/node";
import { type Agent, CallError, type SessionStreams } from "@blindrelay/client-sdk";
import { type Loss, RemotePort } from "@blindrelay/client-sdk/serial";
import { DEFAULT_SETTINGS, type LineSettings } from "@blindrelay/protocol/serial";
import { StreamTable } from "@blindrelay/protocol/streams";

type Handler = (params: unknown, context: { readonly sid: string }) => unknown;
type Send = () => void;

const LIMIT_STEPS = 200_000;

/** What is known of a write at the port: the number of its first byte, and whose it is. */
interface Writing {
  readonly taken: number;
  readonly jobs: readonly { readonly claim: { readonly id: string } }[];
}

/** A device, its port, and the bridge's end of it. */
export class WorldPort {
  readonly name: string;
  readonly line: RawPort;
  readonly raw: RawLine;
  /** What the device got. */
  readonly device: number[] = [];
  isPaused = false;
  /** How long the port takes for each write. */
  slowMs = 0;
  control: string[] = [];
  /** Sees settings, and may throw. */
  configured: (settings: LineSettings) => void = () => undefined;
  /** The device got these; `user` is the claim that wrote them. */
  accepted: (bytes: Uint8Array, number: number, user: string) => void = () => undefined;
  private readonly world: World;
  private user: { data(bytes: Uint8Array): void; end(reason: string): Promise<void> } | null = null;

  constructor(world: World, number: number, access: Access) {
    const name = `tty${number}`;
    this.name = name;
    this.world = world;
    this.line = new RawPort(name, access, {
      timer: world.timer,
      random: randomBytes,
      date: () => "2026-01-01T00:00:00Z",
    });
    this.raw = new RawLine(this.line, [name, `modem${number}`], DEFAULT_SETTINGS, world.timer);
  }

  get isPlugged(): boolean {
    return this.user !== null;
  }

  /** Opens the port: the bridge's agent is a new one if it had no other. */
  plug(): void {
    const { timer } = this.world;
    const port: OpenPort = {
      write: async (bytes) => {
        const { opening } = this.line;
        const { taken, jobs } = this.line as unknown as Writing;
        const user = jobs[0]?.claim.id ?? "";
        if (this.slowMs > 0) await new Promise<void>((resolve) => timer.set(this.slowMs, resolve));
        if (this.line.opening !== opening) throw new Error("unplugged");
        this.device.push(...bytes);
        this.accepted(bytes, taken, user);
      },
      pause: () => {
        this.isPaused = true;
      },
      resume: () => {
        this.isPaused = false;
      },
      configure: async (settings) => this.configured(settings),
      control: async (lines) => void this.control.push(JSON.stringify(lines)),
      status: async () => NO_STATUS,
      close: async () => undefined,
    };
    this.isPaused = false;
    this.user = this.world.opened(this, port);
  }

  async pull(): Promise<void> {
    const { user } = this;
    this.user = null;
    await user?.end("unplugged");
    this.world.closed();
  }

  says(...bytes: number[]): void {
    this.user?.data(Uint8Array.from(bytes));
  }
}

/** A bridge whose agent and ports can be replaced, and links that deliver when they are told to. */
export class World {
  readonly timer = new ManualTimer();
  /** What becomes of the bridge's answers. */
  answers: (answer: unknown) => unknown = (answer) => answer;
  readonly ports: readonly WorldPort[];
  /** The first port. */
  readonly tty: WorldPort;
  private readonly program: RawProgram;
  private handlers = new Map<string, Handler>();
  private part: SessionPart | null = null;
  private isRunning = false;
  /** Sessions that the agent holds, and when each was heard. */
  private held = new Map<string, number>();
  private readonly clients: LinkedClient[] = [];

  constructor({ access = "first", ports = 1 }: { access?: Access; ports?: number } = {}) {
    this.tty = new WorldPort(this, 0, access);
    const others = Array.from({ length: ports - 1 }, (_, n) => new WorldPort(this, n + 1, access));
    this.ports = [this.tty, ...others];
    this.program = new RawProgram(this.ports.map(({ raw }) => raw));
  }

  opened({ raw }: WorldPort, port: OpenPort): ReturnType<RawProgram["opened"]> {
    if (!this.isRunning) this.startAgent();
    return this.program.opened(raw, port);
  }

  /** A port is gone, and with the last one the agent. */
  closed(): void {
    if (this.ports.some(({ isPlugged }) => isPlugged)) return;
    this.isRunning = false;
    this.part?.lost(null, "the agent stopped");
    this.held.clear();
    this.cut();
  }

  private startAgent(): void {
    this.isRunning = true;
    this.handlers = new Map();
    const held = this.held;
    this.program.program({
      handle: (method: string, handler: Handler) => this.handlers.set(method, handler),
      emit: () => 0,
      attach: (part: SessionPart) => {
        this.part = part;
        return {
          maxPlaintext: 47_000,
          send: (sid: string, text: string) => this.toClient(sid, text),
          heardAt: (sid: string) => held.get(sid) ?? null,
        };
      },
    } as unknown as BridgeAgent);
  }

  /** The agent's own link is lost, and comes back. */
  cut(): void {
    for (const client of this.clients) client.cut();
  }

  client(): LinkedClient {
    const client = new LinkedClient(this);
    this.clients.push(client);
    return client;
  }

  /** The agent's session ends by time, or because its client leaves. */
  forget(sid: string, reason = "the session is over"): void {
    this.held.delete(sid);
    this.part?.lost(sid, reason);
  }

  private toClient(sid: string, text: string): boolean {
    if (!this.held.has(sid)) return false;
    for (const client of this.clients) client.queueDown(sid, text);
    return true;
  }

  receive(
    sid: string,
    method: string,
    params: unknown,
    answer: (value: unknown, error: unknown) => void,
  ): void {
    if (!this.isRunning) return;
    this.held.set(sid, this.timer.now());
    if (method.startsWith("stream.")) {
      this.part?.receive(method, params, sid);
      return;
    }
    const run = async (): Promise<unknown> => {
      if (method === "system.ping") return {};
      const handler = this.handlers.get(method);
      if (handler === undefined) throw Object.assign(new Error("unknown"), { code: -32_601 });
      return this.answers(await handler(params, { sid }));
    };
    run().then(
      (value) => answer(value, null),
      (error) => answer(null, error),
    );
  }

  /** Runs everything that is due, as far as `until`. */
  async run(done: () => boolean): Promise<void> {
    for (let step = 0; !done(); step++) {
      if (step > LIMIT_STEPS) throw new Error("it does not come to an end");
      let moved = false;
      for (const client of this.clients) moved = client.deliverOne() || moved;
      await null;
      await null;
      if (!moved) {
        this.timer.advance(1);
        if (step % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}

/** One client's link: a queue in each direction, and one session at a time. */
export class LinkedClient {
  sid = "";
  private readonly world: World;
  private up: Send[] = [];
  private down: { readonly sid: string; readonly run: Send }[] = [];
  private table: StreamTable | null = null;
  private notice: (event: string, data: unknown) => void = () => undefined;
  private waiting = new Set<(error: CallError) => void>();
  private numbers = 0;
  private sessions = 0;
  /** Calls that wait, as while the SDK moves to another link; streams do not. Null: none wait. */
  private held: Send[] | null = null;
  /** A dead process: it takes nothing and sends nothing. */
  isDead = false;
  /** How many answers are lost on their way. */
  loses = 0;

  constructor(world: World) {
    this.world = world;
    this.renew();
  }

  /** As `RemotePort` uses it. */
  get agent(): Agent {
    return {
      id: "modem",
      streamNumber: () => ++this.numbers,
      call: (method: string, params: unknown) => this.call(method, params),
      callWithStreams: (method: string, params: unknown, sent: (streams: SessionStreams) => void) =>
        this.call(method, params, sent),
    } as unknown as Agent;
  }

  /** The link is lost: what is under way is gone, and the next session is another. */
  cut(): void {
    this.up = [];
    this.down = [];
    const { table } = this;
    this.renew();
    table?.fail("the link was lost");
    const lost = new CallError("OUTCOME_UNKNOWN", "the link was lost", { retryable: false });
    for (const reject of [...this.waiting]) reject(lost);
  }

  /** The streams of its session break, which goes on. */
  end(reason: string): void {
    this.table?.fail(reason);
  }

  holdCalls(): void {
    this.held ??= [];
  }

  get heldCalls(): number {
    return this.held?.length ?? 0;
  }

  releaseCalls(): void {
    const { held } = this;
    this.held = null;
    for (const call of held ?? []) call();
  }

  queueDown(sid: string, text: string): void {
    if (sid !== this.sid || this.isDead) return;
    const { method, params } = JSON.parse(text);
    this.down.push({
      sid,
      run: () => {
        if (method.startsWith("stream.")) this.table?.receive(method, params);
        else this.notice(method, params);
      },
    });
  }

  deliverOne(): boolean {
    if (this.isDead) {
      this.up = [];
      this.down = [];
      return false;
    }
    const up = this.up.shift();
    up?.();
    const down = this.down.shift();
    if (down !== undefined && down.sid === this.sid) down.run();
    return up !== undefined || down !== undefined;
  }

  private renew(): void {
    const sid = `${Math.random()} ${++this.sessions}`;
    this.sid = sid;
    this.table = new StreamTable({
      maxChunk: 12_288,
      notify: (method, params) => {
        if (this.sid !== sid || this.isDead) return false;
        this.up.push(() => this.world.receive(sid, method, params, () => undefined));
        return true;
      },
    });
  }

  private call(
    method: string,
    params: unknown,
    sent?: (streams: SessionStreams) => void,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const go = (): void => this.send(method, params, sent, resolve, reject);
      if (this.held === null) go();
      else this.held.push(go);
    });
  }

  private send(
    method: string,
    params: unknown,
    sent: ((streams: SessionStreams) => void) | undefined,
    resolve: (value: unknown) => void,
    reject: (error: CallError) => void,
  ): void {
    const { sid, table } = this;
    const fail = (error: CallError): void => {
      this.waiting.delete(fail);
      reject(error);
    };
    this.waiting.add(fail);
    this.up.push(() =>
      this.world.receive(sid, method, params, (value, thrown) => {
        if (this.loses > 0) {
          this.loses--;
          return;
        }
        this.down.push({
          sid,
          run: () => {
            this.waiting.delete(fail);
            if (thrown === null) resolve(value);
            else {
              const { code = -32_000, message } = thrown as { code?: number; message: string };
              const details = { remote: { code, message, data: undefined }, retryable: false };
              reject(new CallError("REMOTE", message, details));
            }
          },
        });
      }),
    );
    // As the SDK does, once the call is on its way.
    sent?.({
      incoming: (id, events) => (table as StreamTable).incoming(id, events),
      outgoing: (id, events) => (table as StreamTable).outgoing(id, events),
      onNotice: (fn) => {
        this.notice = fn;
        return () => undefined;
      },
      paceMs: () => 0,
    });
  }
}

interface Attached {
  readonly remote: RemotePort;
  readonly link: LinkedClient;
  readonly got: number[];
  readonly losses: Loss[];
  readonly away: string[];
  /** Takes nothing from now on. */
  stall(): void;
}

interface AttachOptions {
  readonly port?: string;
  readonly claim?: string;
  readonly watch?: boolean;
  readonly takeover?: boolean;
  readonly user?: string;
  /** Sees every event in its order, beside what is gathered. */
  readonly sees?: {
    data(bytes: Uint8Array): void;
    lost(loss: Loss): void;
  };
}

let claims = 0;

export const attachTo = (world: World, options: AttachOptions = {}): Attached => {
  const link = world.client();
  const got: number[] = [];
  const losses: Loss[] = [];
  const away: string[] = [];
  let isStalled = false;
  const remote = new RemotePort(
    link.agent,
    {
      port: options.port,
      claim: options.claim ?? `claim${String(++claims).padStart(17, "0")}`,
      user: options.user ?? "ada",
      watch: options.watch ?? false,
      takeover: options.takeover ?? false,
      timer: world.timer,
    },
    {
      data: (bytes) => {
        got.push(...bytes);
        options.sees?.data(bytes);
        if (!isStalled) remote.taken(bytes.length);
      },
      writable: () => undefined,
      up: () => undefined,
      down: (reason) => away.push(String(reason)),
      lost: (loss) => {
        losses.push(loss);
        options.sees?.lost(loss);
      },
      changed: () => undefined,
    },
  );
  return {
    remote,
    link,
    got,
    losses,
    away,
    stall: () => {
      isStalled = true;
    },
  };
};

export const started = async (world: World, options: AttachOptions = {}): Promise<Attached> => {
  const attached = attachTo(world, options);
  const start = attached.remote.start().then(
    () => "up",
    (error: Error) => error,
  );
  let outcome: unknown;
  void start.then((value) => {
    outcome = value;
  });
  await world.run(() => outcome !== undefined);
  if (outcome !== "up") throw outcome;
  return attached;
};

export const bytes = (count: number, seed: number): Uint8Array => {
  let state = seed;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 24;
  });
};
