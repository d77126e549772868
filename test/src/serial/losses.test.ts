/**
 * An oracle for "nothing is duplicated, a loss is said": devices and programs that know every byte,
 * on two ports of one agent, over links that are lost for a moment or for minutes, replugged ports,
 * takeovers, purges and watchers, in orders drawn at random. A byte is known by its number.
 */
import { CLIENT_LEFT } from "@blindrelay/agent-sdk/node";
import type { Loss, RemotePort } from "@blindrelay/client-sdk/serial";
import { expect, it } from "vitest";
import { attachTo, bytes, type LinkedClient, World, type WorldPort } from "./world.ts";

/** By hand: RESUME_SEEDS=200. */
const SEEDS = Number(process.env.RESUME_SEEDS ?? 8);
const STEPS = 60;

/** What a program wrote, until it is told of its loss. */
interface Written {
  readonly opening: string;
  readonly number: number;
  readonly byte: number;
  told: Loss["outcome"] | null;
  /** It was purged if the device does not have it. */
  isPurged: boolean;
  hasArrived: boolean;
}

/** What the tests see of the numbers on both sides. */
interface Numbers {
  readonly opening: string;
  readonly readAt: number;
  readonly sendAt: number;
  readonly kept: { readonly end: number };
}

/** A port with its device. */
class Device {
  readonly said = new Map<string, number[]>();
  private readonly written = new Map<string, Written[]>();
  readonly port: WorldPort;

  constructor(port: WorldPort) {
    this.port = port;
    port.accepted = (got, number, user) => {
      const { opening } = this;
      for (const [at, byte] of got.entries()) this.take(opening, user, number + at, byte);
    };
  }

  get opening(): string {
    return this.port.line.opening as string;
  }

  plug(): void {
    this.port.plug();
    this.said.set(this.opening, []);
  }

  says(more: Uint8Array): void {
    this.said.get(this.opening)?.push(...more);
    this.port.line.data(more);
  }

  /** Some numbers are given again, to bytes after others that were told as lost. */
  at(opening: string, user: string, number: number): Written[] {
    const key = `${opening} ${user} ${number}`;
    const found = this.written.get(key) ?? [];
    this.written.set(key, found);
    return found;
  }

  private take(opening: string, user: string, number: number, byte: number): void {
    const found = this.at(opening, user, number).find(
      (one) => one.byte === byte && !one.hasArrived && one.told !== "not sent",
    );
    if (found === undefined) expect.fail(`byte ${number} of ${user} is another, or comes again`);
    found.hasArrived = true;
  }
}

/** A program that reads, and writes unless it watches. */
class Program {
  readonly remote: RemotePort;
  readonly link: LinkedClient;
  readonly name: string;
  private readonly world: World;
  private readonly device: Device;
  private written: Written[] = [];
  private opening: string | null = null;
  private at = 0;
  /** Bytes may be missing without a word. */
  private purges = 0;

  constructor(world: World, device: Device, name: string, watch: boolean, takeover = false) {
    this.world = world;
    this.device = device;
    this.name = name.padEnd(22, "-");
    const { remote, link } = attachTo(world, {
      port: device.port.name,
      claim: this.name,
      user: name,
      watch,
      takeover,
      sees: { data: (came) => this.data(came), lost: (loss) => this.lost(loss) },
    });
    this.remote = remote;
    this.link = link;
  }

  get numbers(): Numbers {
    return this.remote as unknown as Numbers;
  }

  /** It has had the port. */
  get isKnown(): boolean {
    return typeof this.numbers.opening === "string";
  }

  get hasAll(): boolean {
    const { opening, readAt } = this.numbers;
    const { device } = this;
    return opening === device.opening && readAt === device.said.get(opening)?.length;
  }

  write(more: Uint8Array): void {
    const { opening, kept } = this.numbers;
    for (const [at, byte] of more.entries()) {
      const number = kept.end + at;
      const one = { opening, number, byte, told: null, isPurged: false, hasArrived: false };
      this.device.at(opening, this.name, number).push(one);
      this.written.push(one);
    }
    this.remote.write(more);
  }

  purge(read: boolean, write: boolean): void {
    const { sendAt, opening } = this.numbers;
    if (write) {
      for (const one of this.open) {
        one.isPurged = true;
        // What was not sent leaves its number to the next byte.
        if (one.opening === opening && one.number >= sendAt) one.told = "not sent";
      }
    }
    if (read) this.purges++;
    this.remote.purge(read, write).catch(() => undefined);
  }

  /** What should still arrive. */
  get open(): Written[] {
    this.written = this.written.filter(({ told, hasArrived }) => told === null && !hasArrived);
    return this.written;
  }

  leave(): void {
    this.remote.stop();
    this.world.forget(this.link.sid, CLIENT_LEFT);
    this.link.isDead = true;
  }

  private data(came: Uint8Array): void {
    const { opening, readAt } = this.numbers;
    const from = readAt - came.length;
    if (opening === this.opening) {
      if (this.purges === 0) expect(from).toBe(this.at);
      else expect(from).toBeGreaterThanOrEqual(this.at);
    } else {
      // Of the first one, what came before is nobody's.
      if (this.opening !== null && this.purges === 0) expect([0, this.at]).toContain(from);
      this.opening = opening;
      this.purges = 0;
    }
    expect([...came]).toEqual(this.device.said.get(opening)?.slice(from, readAt));
    this.at = readAt;
  }

  private lost({ direction, outcome, from, bytes: count }: Loss): void {
    const first = from as number;
    const last = first + (count as number);
    if (direction === "from the device") {
      // It is the beginning of another opening, or where this client was.
      if (this.opening === null) this.opening = this.numbers.opening;
      else if (this.purges === 0) expect([0, this.at]).toContain(first);
      this.at = last;
      return;
    }
    const { opening } = this.numbers;
    for (let number = first; number < last; number++) {
      const found = this.device.at(opening, this.name, number).find(({ told }) => told === null);
      if (found === undefined) expect.fail(`byte ${number} of ${this.name} was told before`);
      if (outcome === "not sent") expect(found.hasArrived).toBe(false);
      found.told = outcome;
    }
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
    const choice = random(40);
    const some = (): Uint8Array => bytes(1 + random(5_000), random(1e9));
    const writer = random(3) === 0 && this.rival !== null ? this.rival : this.main;
    port.slowMs = [0, 0, random(25), 200][random(4)] as number;
    if (choice < 13) {
      if (writer.isKnown && writer.remote.room > 6_000) writer.write(some());
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
    else this.stayAway(this.main);
  }

  /** Everything comes to rest. */
  async settle(): Promise<void> {
    const { main, rival, world } = this;
    this.device.port.slowMs = 0;
    if (rival !== null) this.end(rival);
    await world.run(() => main.remote.isUp && main.hasAll);
    await world.run(() => main.open.every(({ isPurged }) => isPurged));
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
