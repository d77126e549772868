/**
 * Plays a planned load: a closed loop calls a device again once its answer has arrived and the next
 * call is due; an open loop calls at the planned times, whatever is still in flight.
 */
import type { CallError } from "@blindrelay/client-sdk";
import { callInTurn } from "../base/calls-in-turn.ts";
import { Inbox } from "../devices/exchange.ts";
import type { Question } from "../devices/kinds.ts";
import type { Questions } from "../devices/questions.ts";
import { playTurn } from "../devices/turn.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { Tally } from "../report/tally.ts";
import type { PlannedLoad } from "../scenario/plan.ts";
import type { VirtualClient } from "./client.ts";
import type { Clock } from "./clock.ts";
import type { Device } from "./device.ts";

/** How often calls that wait for the fleet look whether it is online. */
const LOOK_US = 100_000;
/** Clients connect this long before their first call, so that it finds a link. */
const CONNECT_BEFORE_US = 5_000_000;

/** Ends of calls that no fault explains: the program refused it, or its caller gave it up. */
const EXPECTED: readonly string[] = ["REMOTE", "ABORTED"];

/**
 * How a call ended, and whether as it must. `isRunning`: its handler has not settled, or else only
 * the program can be the cause.
 */
export type Done = (
  result: unknown,
  error: CallError | null,
  isRight: boolean,
  isRunning: boolean,
) => void;

/** One question of a load. */
export interface Asked {
  readonly load: PlannedLoad;
  readonly client: VirtualClient;
  readonly device: Device;
  readonly question: Question;
  /** Of its load to its device. */
  readonly isFirst: boolean;
}

interface LoadWorld {
  readonly clock: Clock;
  readonly devices: readonly Device[];
  readonly liveness: LivenessOracle;
  readonly measured: { readonly tally: Tally };
  /** A call was not as it must be. */
  loadFailed(what: string): void;
  /** Whether a peer waits because its login was changed on its way. */
  isSpoiled(id: string): boolean;
  /** Of all loads: what a device is asked follows from what it was asked before. */
  questionsTo(device: Device): Questions;
  call(asked: Asked, done: Done): void;
  exchange(asked: Asked, inbox: Inbox, done: Done): void;
}

/** `clients`: those of this load, in the plan's order. */
export const scheduleLoad = (
  world: LoadWorld,
  load: PlannedLoad,
  clients: readonly VirtualClient[],
): void => {
  const { clock } = world;
  const loops = new Map<number, Loop>();
  for (const [k, client] of clients.entries()) {
    for (const n of load.clients[k] as number[]) {
      // A sequence counts from the device's own client on.
      const order = [...clients.slice(k), ...clients.slice(0, k)];
      loops.set(n, new Loop(world, load, order, world.devices[n] as Device));
    }
    clock.at(Math.max(0, load.fromUs - CONNECT_BEFORE_US), connect, client, null);
  }
  if (load.each > 0) {
    const members = [...loops.values()];
    const isOnline = (): boolean =>
      world.devices.every(({ logins }) => logins > 0) && clients.every(({ online }) => online);
    const look = (): void => {
      if (!isOnline()) clock.at(clock.nowUs + LOOK_US, look, null, null);
      else {
        callInTurn({ ...load, members: members.length }, (n, ended) => {
          if (clock.nowUs < load.untilUs) (members[n] as Loop).ask(ended);
        });
      }
    };
    clock.at(load.fromUs, look, null, null);
    return;
  }
  if (load.everyUs > 0) {
    const members = [...loops.keys()].sort((a, b) => a - b);
    for (const [i, n] of members.entries()) {
      clock.at(load.firstUs[i] as number, turn, loops.get(n) as Loop, null);
    }
    return;
  }
  let next = 0;
  const arriveLater = (): void => {
    const arrival = load.arrivals[next];
    if (arrival !== undefined)
      clock.at(arrival.atUs, arrive, loops.get(arrival.device) as Loop, null);
  };
  const arrive = (loop: Loop): void => {
    next += 1;
    loop.ask(() => undefined);
    arriveLater();
  };
  arriveLater();
};

/** The calls to one device. */
class Loop {
  private readonly world: LoadWorld;
  private readonly load: PlannedLoad;
  /** Its own first. */
  private readonly clients: readonly VirtualClient[];
  private readonly device: Device;
  private readonly questions: Questions;
  private isFirst = true;
  private dueUs = -1;

  constructor(
    world: LoadWorld,
    load: PlannedLoad,
    clients: readonly VirtualClient[],
    device: Device,
  ) {
    this.world = world;
    this.load = load;
    this.clients = clients;
    this.device = device;
    this.questions = world.questionsTo(device);
  }

  /** Closed loop: makes this call, and schedules the next one once this one has ended. */
  turn(): void {
    const { world, load } = this;
    const { clock } = world;
    if (this.dueUs < 0) this.dueUs = clock.nowUs;
    if (clock.nowUs >= load.untilUs) return;
    this.ask(() => {
      this.dueUs = Math.max(this.dueUs + load.everyUs, clock.nowUs);
      if (this.dueUs < load.untilUs) clock.at(this.dueUs, turn, this, null);
    });
  }

  /** One turn: a call, or a sequence. */
  ask(done: () => void): void {
    const { world, load, questions } = this;
    const { clock } = world;
    const { tally } = world.measured;
    tally.beginTurn();
    const inbox = new Inbox();
    for (const { event, client = 1 } of load.spec.steps ?? []) {
      const agent = event === undefined ? null : this.client(client - 1).agent(this.device);
      if (agent !== null) inbox.hear(agent);
    }
    const turn = {
      wait: (ms: number, fn: () => void) => clock.after(ms, fn),
      ask: (question: Question, ended: (answer: unknown, isRight: boolean) => void) =>
        this.askOne(question, inbox, ended),
    };
    playTurn(load.spec, questions, turn, (skipped) => {
      inbox.close();
      tally.endTurn(skipped);
      done();
    });
  }

  private askOne(
    question: Question,
    inbox: Inbox,
    ended: (answer: unknown, isRight: boolean) => void,
  ): void {
    const { world, load, device } = this;
    const client = this.client(question.client ?? 0);
    const asked = { load, client, device, question, isFirst: this.isFirst };
    this.isFirst = false;
    const fromUs = world.clock.nowUs;
    const done: Done = (result, error, isRight, isRunning) => {
      const isOwn = client.userId === device.userId;
      const isServed = !world.isSpoiled(client.id) && !world.isSpoiled(device.id);
      const isUnexpected = error !== null && !isRight && !EXPECTED.includes(error.code);
      // Whoever changes its secret has not told its clients yet.
      const isSettled = device.changing === 0 && fromUs > device.changedUs;
      if (isOwn && isServed && isSettled && isUnexpected && !isRunning) {
        const what = `a call of ${client.id} to ${device.id} ended with ${error.code}: ${error.message}`;
        world.liveness.callFailed(fromUs, error.code, what);
      }
      if (!isRight) {
        const how = error?.message ?? `it answered ${JSON.stringify(result)}`;
        world.loadFailed(`${question.method} of ${client.id} at ${device.id}: ${how}`);
      }
      ended(result, isRight);
    };
    if ((question.kind ?? "call") === "call") world.call(asked, done);
    else world.exchange(asked, inbox, done);
  }

  /** So many after its own. */
  private client(n: number): VirtualClient {
    return this.clients[n] as VirtualClient;
  }
}

const connect = (client: VirtualClient): void => client.start();
const turn = (loop: Loop): void => loop.turn();
