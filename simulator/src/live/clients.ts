/**
 * The clients of a live scenario: the public client over real sockets, and the loads of the plan.
 * A closed loop waits for each device's answer before it asks again; an open one does not.
 */

import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import type { LinkPort } from "@blindrelay/agent-sdk/ports";
import { CallError, Client } from "@blindrelay/client-sdk/node";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 as x25519 } from "@blindrelay/protocol/suites/node-x25519";
import { callInTurn } from "../base/calls-in-turn.ts";
import { Questions } from "../devices/questions.ts";
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
  readonly version: "1" | "2";
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
  readonly method: string;
  /** `performance.now()` at its start. */
  readonly fromMs: number;
  readonly error: CallError | null;
  readonly isRight: boolean;
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
  readonly whole: Promise<void>;
  /** The network of each client, by its number over all loads. */
  links(client: number): LinkPort;
  /** A call begins. `dueMs`: when it was meant to; null: now. */
  asked(device: number, isFirst: boolean, dueMs: number | null): OpenCall;
  ended(call: EndedCall): void;
}

export class Clients {
  private readonly options: ClientsOptions;
  private readonly clients: LiveClient[] = [];
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly questions = new Map<number, Questions>();
  private readonly asked = new Set<number>();
  private readonly hurry = new AbortController();
  private isOver = false;
  /** Calls without an outcome yet. */
  underWay = 0;

  constructor(options: ClientsOptions) {
    this.options = options;
  }

  /** Connects the clients of all loads, and makes their calls as planned. */
  start(loads: readonly PlannedLoad[]): void {
    const ports = clientPorts();
    for (const load of loads) {
      const clientOf = new Map<number, LiveClient>();
      for (const members of load.clients) {
        const link = this.options.links(this.clients.length);
        const client = new LiveClient(this.options, load.spec.presence ?? false, {
          ...ports,
          link,
        });
        this.clients.push(client);
        for (const device of members) clientOf.set(device, client);
        client.connect();
      }
      if (load.each > 0) this.startCounted(load, clientOf);
      else if (load.everyUs > 0) this.startClosed(load, clientOf);
      else if (load.arrivals.length > 0) this.startOpen(load, clientOf, 0);
    }
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

  private startCounted(load: PlannedLoad, clientOf: ReadonlyMap<number, LiveClient>): void {
    const members = [...clientOf];
    const ready = [...new Set(clientOf.values())].map((client) => client.connected);
    const begun = new Promise<void>((resolve) => this.at(load.fromUs / 1000, resolve));
    Promise.all([this.options.whole, begun, ...ready]).then(() => {
      callInTurn({ ...load, members: members.length }, (n, ended) => {
        const [device, client] = members[n] as [number, LiveClient];
        if (!this.isOver && this.nowMs() * 1000 < load.untilUs) {
          this.call(load, client, device, null).then(ended);
        }
      });
    });
  }

  private startClosed(load: PlannedLoad, clientOf: ReadonlyMap<number, LiveClient>): void {
    const everyMs = load.everyUs / 1000;
    // `firstUs` is in the order of the group, and so are the devices' indices.
    const members = [...clientOf.keys()].sort((a, b) => a - b);
    members.forEach((device, i) => {
      const client = clientOf.get(device) as LiveClient;
      const ask = (dueMs: number): void => {
        if (dueMs * 1000 >= load.untilUs) return;
        this.at(dueMs, () => {
          this.call(load, client, device, dueMs).then(() =>
            ask(Math.max(dueMs + everyMs, this.nowMs())),
          );
        });
      };
      ask((load.firstUs[i] as number) / 1000);
    });
  }

  private startOpen(load: PlannedLoad, clientOf: ReadonlyMap<number, LiveClient>, n: number): void {
    const arrival = load.arrivals[n];
    if (arrival === undefined) return;
    this.at(arrival.atUs / 1000, () => {
      this.startOpen(load, clientOf, n + 1);
      const { device, atUs } = arrival;
      this.call(load, clientOf.get(device) as LiveClient, device, atUs / 1000);
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

  /** `dueMs`: when it was meant to begin, in the plan's time; null: whenever it can. */
  private async call(
    load: PlannedLoad,
    client: LiveClient,
    device: number,
    dueMs: number | null,
  ): Promise<void> {
    const question = this.questionsTo(device).next(load.spec);
    const { method, params } = question;
    const isFirst = !this.asked.has(device);
    this.asked.add(device);
    this.underWay += 1;
    const open = this.options.asked(
      device,
      isFirst,
      dueMs === null ? null : this.startedMs + dueMs,
    );
    const fromMs = performance.now();
    const timeoutMs = load.timeoutMs;
    const idempotent = load.spec.idempotent ?? false;
    const options = { timeoutMs, idempotent, signal: this.hurry.signal };
    const common = { open, load, device, method, fromMs };
    try {
      const called = this.options.devices[device] as Called;
      const result = await client.call(called, method, params, options);
      const isRight = question.right(result);
      this.options.ended({ ...common, error: null, isRight, result });
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      this.options.ended({ ...common, error, isRight: false, result: null });
    } finally {
      this.underWay -= 1;
    }
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

  call(
    { id, agentToken, version }: Called,
    method: string,
    params: unknown,
    options: { timeoutMs: number; idempotent: boolean; signal: AbortSignal },
  ): Promise<unknown> {
    if (this.client === null) {
      const error = new CallError("UNREACHABLE", "the client is not connected yet");
      return Promise.reject(error);
    }
    return this.client.agent(id, agentToken, { version }).call(method, params, options);
  }

  close(): void {
    this.isClosed = true;
    this.client?.close();
  }
}
