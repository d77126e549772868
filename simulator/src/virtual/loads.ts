/**
 * Plays a planned load: a closed loop calls a device again once its answer has arrived and the next
 * call is due; an open loop calls at the planned times, whatever is still in flight.
 */
import type { CallError } from "@blindrelay/client-sdk";
import { callInTurn } from "../base/calls-in-turn.ts";
import type { Question } from "../devices/kinds.ts";
import type { Questions } from "../devices/questions.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
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

interface LoadWorld {
  readonly clock: Clock;
  readonly devices: readonly Device[];
  readonly liveness: LivenessOracle;
  /** Whether a peer waits because its login was changed on its way. */
  isSpoiled(id: string): boolean;
  /** Of all loads: what a device is asked follows from what it was asked before. */
  questionsTo(device: Device): Questions;
  call(
    load: PlannedLoad,
    client: VirtualClient,
    device: Device,
    question: Question,
    isFirst: boolean,
    done: (result: unknown, error: CallError | null, isRunning: boolean) => void,
  ): void;
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
      loops.set(n, new Loop(world, load, client, world.devices[n] as Device));
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
  private readonly client: VirtualClient;
  private readonly device: Device;
  private readonly questions: Questions;
  private isFirst = true;
  private dueUs = -1;

  constructor(world: LoadWorld, load: PlannedLoad, client: VirtualClient, device: Device) {
    this.world = world;
    this.load = load;
    this.client = client;
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

  ask(done: () => void): void {
    const { world, load, client, device } = this;
    const isFirst = this.isFirst;
    this.isFirst = false;
    const fromUs = world.clock.nowUs;
    const question = this.questions.next(load.spec);
    world.call(load, client, device, question, isFirst, (_, error, isRunning) => {
      const isOwn = client.userId === device.userId;
      const isServed = !world.isSpoiled(client.id) && !world.isSpoiled(device.id);
      if (isOwn && isServed && error !== null && !EXPECTED.includes(error.code) && !isRunning) {
        const what = `a call of ${client.id} to ${device.id} ended with ${error.code}: ${error.message}`;
        world.liveness.callFailed(fromUs, error.code, what);
      }
      done();
    });
  }
}

const connect = (client: VirtualClient): void => client.start();
const turn = (loop: Loop): void => loop.turn();
