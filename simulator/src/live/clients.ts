/**
 * The clients of a live scenario: the public client over real sockets, and the loads of the plan.
 * A closed loop waits for each device's answer before it asks again; an open one does not.
 */

import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import type { LinkPort } from "@blindrelay/agent-sdk/ports";
import { type Agent, CallError, Client } from "@blindrelay/client-sdk/node";
import type { Version } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import { callInTurn } from "../base/calls-in-turn.ts";
import { exchange, Inbox } from "../devices/exchange.ts";
import type { Question } from "../devices/kinds.ts";
import { Questions } from "../devices/questions.ts";
import { playTurn } from "../devices/turn.ts";
import type { OpenCall } from "../report/tally.ts";
import type { PlannedLoad } from "../scenario/plan.ts";

/** A client that could not connect at all retries after this long. */
const RETRY_MS = 1_000;

/** A device, as its callers know it. */
export interface Called {
  readonly id: string;
  /** The device's name, which determines a bundled kind's correct answers. */
  readonly name: string;
  readonly kind: string | null;
  readonly version: Version;
  /** Starts after the first one; an answer across a restart may refer to either start. */
  restarts: number;
  /** Changes when the device loses its storage. */
  agentToken: string;
}

export interface EndedCall {
  readonly open: OpenCall;
  readonly load: PlannedLoad;
  /** Index of the device. */
  readonly device: number;
  readonly question: Question;
  /** `performance.now()` at its start. */
  readonly fromMs: number;
  readonly error: CallError | null;
  readonly result: unknown;
}

/** The ports of a live run's clients, except for their link. */
const clientPorts = () => ({
  timer: systemTimer(),
  random: (length: number) => randomBytes(length),
  suite: nodeSuite(),
  x25519,
  log: () => undefined,
});

export interface ClientsOptions {
  /** `/wss` of the relay. */
  readonly url: string;
  readonly accountToken: string;
  readonly devices: readonly Called[];
  /** The whole fleet has come online: what loads with a number of calls wait for. */
  readonly whole: Promise<unknown>;
  /** The network of each client, by its number over all loads. */
  links(client: number): LinkPort;
  /** A call begins. `dueMs`: when it was meant to; null: now. */
  asked(device: number, method: string, isFirst: boolean, dueMs: number | null): OpenCall;
  /** Returns whether it is right. */
  ended(call: EndedCall): boolean;
  turnBegins(): void;
  /** `skipped`: so many of its calls are not made, since one before them failed. */
  turnEnded(skipped: number): void;
}

/** Of a load: its clients, and which of them is a device's own. */
interface Callers {
  readonly clients: readonly LiveClient[];
  readonly own: number;
}

export class Clients {
  private readonly options: ClientsOptions;
  private readonly clients: LiveClient[] = [];
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly questions = new Map<number, Questions>();
  private readonly asked = new Set<number>();
  private readonly hurry = new AbortController();
  private isOver = false;
  /** Calls and sequences without an outcome yet. */
  underWay = 0;

  constructor(options: ClientsOptions) {
    this.options = options;
  }

  /** Connects the clients of all loads, and makes their calls as planned. */
  start(loads: readonly PlannedLoad[]): void {
    const ports = clientPorts();
    for (const load of loads) {
      const clientOf = new Map<number, Callers>();
      const clients: LiveClient[] = [];
      for (const members of load.clients) {
        const link = this.options.links(this.clients.length);
        const client = new LiveClient(this.options, load.spec.presence ?? false, {
          ...ports,
          link,
        });
        this.clients.push(client);
        for (const device of members) clientOf.set(device, { clients, own: clients.length });
        clients.push(client);
        client.connect();
      }
      if (load.each > 0) this.startCounted(load, clientOf);
      else if (load.everyUs > 0) this.startClosed(load, clientOf);
      else if (load.arrivals.length > 0) this.startOpen(load, clientOf, 0);
    }
  }

  /** Calls a device outside of the plan. Rejects with a CallError, or if there is no client. */
  async callOnce(device: number, method: string, timeoutMs: number): Promise<unknown> {
    const agent = this.clients[0]?.agent(this.options.devices[device] as Called);
    if (agent == null) throw new CallError("UNREACHABLE", "no client is connected");
    return agent.call(method, undefined, { timeoutMs, idempotent: true });
  }

  /** Makes no further call. */
  end(): void {
    this.isOver = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }

  /** Ends the calls in flight, and every client. */
  stop(): void {
    this.end();
    this.hurry.abort(new Error("the run is over"));
    for (const client of this.clients) client.close();
  }

  private startCounted(load: PlannedLoad, clientOf: ReadonlyMap<number, Callers>): void {
    const members = [...clientOf];
    const clients = new Set([...clientOf.values()].flatMap((callers) => callers.clients));
    const ready = [...clients].map((client) => client.connected);
    const begun = new Promise<void>((resolve) => this.at(load.fromUs / 1000, resolve));
    Promise.all([this.options.whole, begun, ...ready]).then(() => {
      callInTurn({ ...load, members: members.length }, (n, ended) => {
        const [device, client] = members[n] as [number, Callers];
        if (!this.isOver && this.nowMs() * 1000 < load.untilUs) {
          this.turn(load, client, device, null).then(ended);
        }
      });
    });
  }

  private startClosed(load: PlannedLoad, clientOf: ReadonlyMap<number, Callers>): void {
    const everyMs = load.everyUs / 1000;
    // `firstUs` is in the order of the group, and so are the devices' indices.
    const members = [...clientOf.keys()].sort((a, b) => a - b);
    members.forEach((device, i) => {
      const client = clientOf.get(device) as Callers;
      const ask = (dueMs: number): void => {
        if (dueMs * 1000 >= load.untilUs) return;
        this.at(dueMs, () => {
          this.turn(load, client, device, dueMs).then(() =>
            ask(Math.max(dueMs + everyMs, this.nowMs())),
          );
        });
      };
      ask((load.firstUs[i] as number) / 1000);
    });
  }

  private startOpen(load: PlannedLoad, clientOf: ReadonlyMap<number, Callers>, n: number): void {
    const arrival = load.arrivals[n];
    if (arrival === undefined) return;
    this.at(arrival.atUs / 1000, () => {
      this.startOpen(load, clientOf, n + 1);
      const { device, atUs } = arrival;
      this.turn(load, clientOf.get(device) as Callers, device, atUs / 1000);
    });
  }

  /** Of the plan's time, which begins when the clients are made. */
  private readonly startedMs = performance.now();

  private nowMs(): number {
    return performance.now() - this.startedMs;
  }

  private at(ms: number, fn: () => void): void {
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        if (!this.isOver) fn();
      },
      Math.max(0, ms - this.nowMs()),
    );
    this.timers.add(timer);
  }

  /** One turn: a call, or a sequence. `dueMs`: when it was meant to begin, in the plan's time. */
  private turn(
    load: PlannedLoad,
    { clients, own }: Callers,
    device: number,
    dueMs: number | null,
  ): Promise<void> {
    const called = this.options.devices[device] as Called;
    const inbox = new Inbox();
    const by = (n = 0): LiveClient => clients[(own + n) % clients.length] as LiveClient;
    for (const { event, client = 1 } of load.spec.steps ?? []) {
      const agent = event === undefined ? null : by(client - 1).agent(called);
      if (agent !== null) inbox.hear(agent);
    }
    this.underWay += 1;
    this.options.turnBegins();
    let due = dueMs;
    return new Promise((resolve) => {
      const turn = {
        // A sequence that has begun also ends.
        wait: (ms: number, fn: () => void) =>
          setTimeout(() => this.hurry.signal.aborted || fn(), ms).unref(),
        ask: (question: Question, ended: (answer: unknown, isRight: boolean) => void) => {
          this.ask(load, by(question.client), device, question, inbox, due).then(
            ({ result, isRight }) => ended(result, isRight),
          );
          due = null;
        },
      };
      playTurn(load.spec, this.questionsTo(device), turn, (skipped) => {
        inbox.close();
        this.options.turnEnded(skipped);
        this.underWay -= 1;
        resolve();
      });
    });
  }

  /** `dueMs`: when it was meant to begin, in the plan's time; null: whenever it can. */
  private async ask(
    load: PlannedLoad,
    client: LiveClient,
    device: number,
    question: Question,
    inbox: Inbox,
    dueMs: number | null,
  ): Promise<{ result: unknown; isRight: boolean }> {
    const isFirst = !this.asked.has(device);
    this.asked.add(device);
    const open = this.options.asked(
      device,
      question.method,
      isFirst,
      dueMs === null ? null : this.startedMs + dueMs,
    );
    const fromMs = performance.now();
    const { timeoutMs = load.timeoutMs } = question;
    const common = { open, load, device, question, fromMs };
    const called = this.options.devices[device] as Called;
    const outcome = await client
      .play(called, question, inbox, {
        timeoutMs,
        idempotent: load.spec.idempotent ?? false,
        signal: this.hurry.signal,
      })
      .then(
        (result) => ({ result, error: null }),
        (error: unknown) => {
          if (!(error instanceof CallError)) throw error;
          return { result: null, error };
        },
      );
    return { result: outcome.result, isRight: this.options.ended({ ...common, ...outcome }) };
  }

  /** Of all loads: what a device is asked follows from what it was asked before. */
  private questionsTo(device: number): Questions {
    let known = this.questions.get(device);
    if (known === undefined) {
      const called = this.options.devices[device] as Called;
      known = new Questions(called.kind, called.name, () => called.restarts);
      this.questions.set(device, known);
    }
    return known;
  }
}

class LiveClient {
  private readonly options: ClientsOptions;
  private readonly presence: boolean;
  private readonly ports: ConstructorParameters<typeof Client>[1];
  private readonly linked = Promise.withResolvers<void>();
  /** Resolves once it has connected. */
  readonly connected = this.linked.promise;
  private client: Client | null = null;
  private isClosed = false;

  constructor(
    options: ClientsOptions,
    presence: boolean,
    ports: ConstructorParameters<typeof Client>[1],
  ) {
    this.options = options;
    this.presence = presence;
    this.ports = ports;
  }

  /** Connects, and retries if that fails. */
  connect(): void {
    const { url, accountToken } = this.options;
    const client = new Client({ url, accountToken, presence: this.presence }, this.ports);
    this.client = client;
    client.start().then(
      () => this.linked.resolve(),
      () => {
        this.client = null;
        if (!this.isClosed) setTimeout(() => this.isClosed || this.connect(), RETRY_MS).unref();
      },
    );
  }

  /** The SDK's handle of a device; null: it is not connected yet. */
  agent({ id, agentToken, version }: Called): Agent | null {
    return this.client?.agent(id, agentToken, { version }) ?? null;
  }

  play(
    called: Called,
    question: Question,
    inbox: Inbox,
    options: { timeoutMs: number; idempotent: boolean; signal: AbortSignal },
  ): Promise<unknown> {
    const agent = this.agent(called);
    if (agent === null) {
      const error = new CallError("UNREACHABLE", "the client is not connected yet");
      return Promise.reject(error);
    }
    const { kind = "call", method, params } = question;
    if (kind === "call") return agent.call(method, params, options);
    return exchange(agent, inbox, question, options.timeoutMs, this.ports.timer);
  }

  close(): void {
    this.isClosed = true;
    this.client?.close();
  }
}
