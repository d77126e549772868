/**
 * An oracle for "nothing is duplicated, a loss is said": devices and programs that know every byte,
 * on two ports of one agent, over links that are lost for a moment or for minutes, replugged ports,
 * takeovers, purges and watchers, in orders drawn at random. A byte is known by its number.
 */
import { CLIENT_LEFT } from "@blindrelay/agent-sdk/node";
import type { RemotePort } from "@blindrelay/client-sdk/serial";
import { SerialOracle, SerialUser } from "@blindrelay/simulator/testing";
import { expect, it } from "vitest";
import { attachTo, bytes, type LinkedClient, World, type WorldPort } from "./world.ts";

/** By hand: RESUME_SEEDS=200. */
const SEEDS = Number(process.env.RESUME_SEEDS ?? 8);
const STEPS = 60;

/** A program that reads, and writes unless it watches. */
class Program {
  readonly remote: RemotePort;
  readonly link: LinkedClient;
  readonly user: SerialUser;
  private readonly world: World;

  constructor(world: World, device: Device, name: string, watch: boolean, takeover = false) {
    this.world = world;
    const claim = name.padEnd(22, "-");
    this.user = new SerialUser(device.oracle, claim, () => this.remote);
    const { remote, link } = attachTo(world, {
      port: device.port.name,
      claim,
      user: name,
      watch,
      takeover,
      sees: { data: (came) => this.user.got(came), lost: (loss) => this.user.lost(loss) },
    });
    this.remote = remote;
    this.link = link;
  }

  write(more: Uint8Array): void {
    this.user.writes(more);
    this.remote.write(more);
  }

  purge(read: boolean, write: boolean): void {
    this.user.purging(read, write);
    this.remote.purge(read, write).catch(() => undefined);
  }

  leave(): void {
    this.remote.stop();
    this.world.forget(this.link.sid, CLIENT_LEFT);
    this.link.isDead = true;
  }
}

/** A port with its device. */
class Device {
  readonly oracle = new SerialOracle((what) => expect.fail(what));
  readonly port: WorldPort;

  constructor(port: WorldPort) {
    this.port = port;
    port.accepted = (got, number, user) => {
      this.oracle.took(port.line.opening as string, user, number, got);
    };
  }

  plug(): void {
    this.port.plug();
    this.oracle.opened(this.port.line.opening as string);
  }

  says(more: Uint8Array): void {
    this.oracle.says(more);
    this.port.line.data(more);
  }
}

/** One port's history. */
class History {
  readonly device: Device;
  readonly programs: Program[] = [];
  private readonly world: World;
  private readonly random: (below: number) => number;
  private main!: Program;
  private rival: Program | null = null;
  private names = 0;

  constructor(world: World, port: WorldPort, random: (below: number) => number) {
    this.world = world;
    this.random = random;
    this.device = new Device(port);
  }

  async begin(): Promise<void> {
    this.device.plug();
    this.main = this.program("main", false);
    let isUp = false;
    void this.main.remote.start().then(() => {
      isUp = true;
    });
    await this.world.run(() => isUp);
  }

  async step(): Promise<void> {
    const { device, random, world } = this;
    const { port } = device;
    if (random(4) === 0) for (const { link } of this.programs) link.releaseCalls();
    const choice = random(42);
    const some = (): Uint8Array => bytes(1 + random(5_000), random(1e9));
    const writer = random(3) === 0 && this.rival !== null ? this.rival : this.main;
    port.slowMs = [0, 0, random(25), 200][random(4)] as number;
    if (choice < 13) {
      if (writer.user.isKnown && writer.remote.room > 6_000) writer.write(some());
    } else if (choice < 22) {
      if (!port.isPaused && port.isPlugged) device.says(some());
    } else if (choice < 27) this.any().link.cut();
    else if (choice < 30) writer.purge(random(2) === 0, random(2) === 0);
    else if (choice === 30) this.come("watcher", true);
    else if (choice < 36) this.comeOrGo();
    else if (choice < 38) {
      await port.pull();
      if (random(2) === 0) await this.pass(random(2_000));
      device.plug();
    } else if (choice === 38) world.cut();
    else if (choice > 39) writer.link.holdCalls();
    else this.stayAway(this.main);
  }

  /** Everything comes to rest. */
  async settle(): Promise<void> {
    const { main, rival, world } = this;
    this.device.port.slowMs = 0;
    for (const { link } of this.programs) link.releaseCalls();
    if (rival !== null) this.end(rival);
    await world.run(() => main.remote.isUp && main.user.hasAll);
    await world.run(() => main.user.open.every(({ isPurged }) => isPurged));
  }

  private program(name: string, watch: boolean, takeover = false): Program {
    const made = new Program(this.world, this.device, name, watch, takeover);
    this.programs.push(made);
    return made;
  }

  private any(): Program {
    return this.programs[this.random(this.programs.length)] as Program;
  }

  /** A program that ends if it is refused. */
  private come(name: string, watch: boolean): Program {
    const made = this.program(`${name}${++this.names}`, watch, this.random(2) === 0);
    made.remote.start().catch(() => this.end(made));
    return made;
  }

  private comeOrGo(): void {
    if (this.rival === null) this.rival = this.come("rival", false);
    else this.end(this.rival);
  }

  private end(program: Program): void {
    if (this.rival === program) this.rival = null;
    const at = this.programs.indexOf(program);
    if (at < 0) return;
    this.programs.splice(at, 1);
    program.leave();
  }

  /** For longer than the port is paused: its oldest bytes go. */
  private stayAway({ link }: Program): void {
    const { sid } = link;
    link.cut();
    link.isDead = true;
    this.world.forget(sid);
    this.world.timer.advance(61_000);
    for (let n = 0; n < 28; n++) this.device.says(bytes(10_000, this.random(1e9)));
    link.isDead = false;
    link.cut();
  }

  private async pass(turns: number): Promise<void> {
    let left = turns;
    await this.world.run(() => left-- <= 0);
  }
}

it.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  "every byte arrives once and in its place, or is told as lost, in order %d",
  async (seed) => {
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const world = new World({ ports: 2, access: seed % 4 === 0 ? "first" : "takeover" });
    const histories = world.ports.map((port) => new History(world, port, random));
    for (const history of histories) await history.begin();
    for (let step = 0; step < STEPS; step++) {
      await histories[random(2)]?.step();
      let left = random(40);
      await world.run(() => left-- <= 0);
    }
    for (const history of histories) await history.settle();
  },
);
