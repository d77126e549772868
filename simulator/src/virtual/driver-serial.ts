/**
 * Programs on the ports of a bridge, and the devices on its cables: both say random bytes, links,
 * relay and bridge fail as the scenario wants, programs come, go, take over and are killed, cables
 * are pulled. Every byte is accounted for (oracle/serial.ts), and once all is well, arrives.
 */
import type { Client } from "@blindrelay/client-sdk";
import { type Loss, RemotePort } from "@blindrelay/client-sdk/serial";
import { Stream } from "../base/random-streams.ts";
import type { Cable } from "../devices/bridge.ts";
import { SerialOracle, SerialUser } from "../oracle/serial.ts";
import { USUAL_NETWORK, VirtualClient } from "./client.ts";
import type { Device } from "./device.ts";
import type { DriverWorld } from "./driver-world.ts";

const STEP_MS = 1_500;
/** How long there is something new in each step, and how long it has to arrive. */
const ACTIVE_MS = 15_000;
const REST_MS = 20_000;
/** Without any progress, longer than calls, retries and questions to a writer take. */
const STUCK_MS = 45_000;
/** A program that could not begin is started again after this. */
const AGAIN_MS = 3_000;
/**
 * Longer than anything that the driver did has an effect on what is lost: a cut link is noticed
 * after up to 30 s, and after several of them the next attempt comes up to a minute later.
 */
const EFFECT_MS = 100_000;
/** So late may a program find the bridge that has come back after a fault. */
const BACK_MS = 60_000;
/** What each side keeps and grants, at most. */
const READ_WINDOW = 131_072;
/** For so many steps that move bytes, a link is lost so often. */
const MOVES = 20;
const CUTS = 2;
const SOME = 600;
const MANY = 5_000;
/** Three messages, after which a bridge acknowledges all that it has. */
const ACKNOWLEDGED = 36_864;
const FLOOD_PIECES = 28;
const FLOOD_BYTES = 10_000;

/** A process that has attached to the port, with its own client. */
class Program {
  readonly user: SerialUser;
  readonly claim: string;
  /** Another one than the device's: its storage was lost. */
  readonly agentToken: string;
  remote: RemotePort | null = null;
  isStalled = false;
  isOver = false;
  private untaken = 0;
  private readonly port: Port;
  private readonly client: VirtualClient;
  private readonly watch: boolean;
  private readonly takeover: boolean;

  constructor(port: Port, name: string, address: string, watch: boolean, takeover: boolean) {
    this.port = port;
    this.watch = watch;
    this.takeover = takeover;
    this.claim = name.replace(/[^A-Za-z0-9]/g, "-").padEnd(22, "-");
    this.agentToken = port.device.agentToken;
    this.user = new SerialUser(port.oracle, this.claim, () => this.remote);
    const { world, device, id } = port;
    this.client = new VirtualClient(world, {
      id: `${id}/${name}`,
      address,
      network: USUAL_NETWORK,
      presence: true,
      account: device.userId,
      met: (client) => this.met(client),
    });
    this.client.start();
  }

  get isUp(): boolean {
    return this.remote?.isUp === true;
  }

  /** Since when it has a link; one that is often lost comes back late. */
  get onlineSinceUs(): number {
    const { online, onlineSinceUs } = this.client;
    return online ? onlineSinceUs : Number.POSITIVE_INFINITY;
  }

  write(bytes: Uint8Array): void {
    const { remote, user } = this;
    if (remote === null || !user.isKnown || remote.room < bytes.length) return;
    user.writes(bytes);
    remote.write(bytes);
  }

  purge(read: boolean, write: boolean): void {
    const { remote, user } = this;
    if (remote === null || !user.isKnown) return;
    user.purging(read, write);
    const over = (): void => user.purging(read, false);
    remote.purge(read, write).then(over, over);
  }

  takeAll(): void {
    this.isStalled = false;
    this.remote?.taken(this.untaken);
    this.untaken = 0;
  }

  /** Its link is lost for a moment. */
  cut(): void {
    for (const wire of [...this.client.conditions.wires]) wire.cut("the link was lost");
  }

  /** It ends, and says so if it can. */
  leave(): void {
    this.isOver = true;
    this.user.leaves();
    this.remote?.stop();
    this.client.stop();
  }

  /** As by `kill -9`. */
  kill(): void {
    for (const wire of [...this.client.conditions.wires]) wire.vanish();
    this.leave();
  }

  private met(client: Client): void {
    const { device } = this.port;
    client.on("link", ({ state }) => {
      if (state !== "online" || this.isOver) return;
      if (this.remote === null) this.begin(client);
      else this.remote.retryNow();
    });
    client.on("presence", ({ agentId, online }) => {
      if (agentId === device.id && online) this.remote?.retryNow();
    });
  }

  private begin(client: Client): void {
    const { port, claim, watch, takeover } = this;
    const { device, world } = port;
    const remote = new RemotePort(
      client.agent(device.id, this.agentToken, device.agentOptions),
      { port: port.name, claim, user: claim, watch, takeover, timer: this.client.timer },
      {
        data: (bytes) => {
          this.untaken += bytes.length;
          if (this.untaken > READ_WINDOW) {
            port.oracle.violate(`${claim} got more bytes than it granted`);
          }
          this.user.got(bytes);
          if (!this.isStalled) this.takeAll();
        },
        writable: () => undefined,
        up: () => undefined,
        down: (reason) => {
          const text = String(reason);
          if (/credit/.test(text)) port.oracle.violate(`${claim}: ${text}`);
        },
        lost: (loss) => {
          // What it has not sent when it leaves is no loss.
          if (this.isOver) return;
          this.user.lost(loss);
          port.told(this, loss);
        },
        changed: () => undefined,
      },
    );
    this.remote = remote;
    world.stir();
    remote.start().catch(() => this.port.refused(this));
  }
}

/** One port of the bridge. */
class Port {
  readonly id: string;
  readonly world: DriverWorld;
  readonly device: Device;
  readonly name: string;
  readonly oracle: SerialOracle;
  private readonly draws: Stream;
  private readonly index: number;
  private readonly address: string;
  /**
   * Of the active time, drawn anew for each: how many of the steps that move bytes write, and how
   * many others do what may cost bytes. Most things can be seen only where some happen rarely.
   */
  private writes = 0;
  private disturbances = 0;
  private cable: Cable | null = null;
  private main: Program | null = null;
  private rival: Program | null = null;
  private names = 0;
  private restsSinceUs: number | null = null;
  private activeSinceUs = 0;
  private progress = "";
  private progressUs = 0;
  private disturbedUs = Number.NEGATIVE_INFINITY;

  constructor(world: DriverWorld, driver: string, device: Device, index: number, address: string) {
    this.world = world;
    this.device = device;
    this.index = index;
    this.name = `tty${index}`;
    this.id = `${driver}/${device.id}/${this.name}`;
    this.address = address;
    this.draws = new Stream(`${world.seed}/${this.id}`);
    this.oracle = new SerialOracle((what) => world.violate("serial", `${this.id}: ${what}`));
  }

  begin(): void {
    this.comeMain();
    this.activate();
    this.step();
  }

  /** A port that another one keeps, or a bridge that is not there: a person tries again. */
  refused(program: Program): void {
    program.leave();
    if (program === this.rival) this.rival = null;
    if (program !== this.main) return;
    this.world.clock.after(AGAIN_MS, () => {
      if (this.main === program) this.comeMain();
    });
  }

  told({ claim }: Program, { bytes, direction, outcome }: Loss): void {
    const { clock, liveness } = this.world;
    const isQuiet = clock.nowUs - this.disturbedUs > EFFECT_MS * 1000;
    if (isQuiet && liveness.wasCalm(clock.nowUs - BACK_MS * 1000)) {
      this.oracle.violate(
        `${claim} is told ${bytes} bytes ${direction} as ${outcome}, and nothing was in their way`,
      );
    }
  }

  private comeMain(): void {
    this.main = new Program(this, `main${++this.names}`, this.address, false, false);
  }

  /** The port, unless the bridge is off; of each of its starts it is another one. */
  private now(): Cable | null {
    const cables = this.device.exposed?.get("cables")?.() as readonly Cable[] | undefined;
    const cable = cables?.[this.index] ?? null;
    if (cable !== null && cable !== this.cable) {
      const took: Cable["took"] = ({ opening, user, number, bytes }) =>
        this.oracle.took(opening, user, number, bytes);
      cable.untold.forEach(took);
      cable.took = took;
      this.opened(cable);
    }
    this.cable = cable;
    return cable;
  }

  private opened({ line: { opening } }: Cable): void {
    if (opening !== null) this.oracle.opened(opening);
  }

  private step(): void {
    const { world, device } = this;
    const { clock } = world;
    world.stir();
    if (this.main !== null && this.main.agentToken !== device.agentToken) {
      this.disturbedUs = clock.nowUs;
      this.main.leave();
      this.comeMain();
    }
    const cable = this.now();
    if (cable !== null) device.enter();
    if (this.restsSinceUs === null) {
      if (cable !== null) this.act(cable);
      if (clock.nowUs - this.activeSinceUs > ACTIVE_MS * 1000) this.rest(cable);
    } else this.look(cable, this.restsSinceUs);
    const mostMs = [30, 150, STEP_MS][this.draws.below(3)] as number;
    clock.after(1 + this.draws.below(mostMs), () => this.step());
  }

  private activate(): void {
    const { draws } = this;
    this.restsSinceUs = null;
    this.activeSinceUs = this.world.clock.nowUs;
    this.writes = 1 + draws.below(MOVES - 1);
    this.disturbances = [0, 5, MOVES][draws.below(3)] as number;
  }

  private act(cable: Cable): void {
    const { draws, main, rival, writes, disturbances } = this;
    const choice = draws.below(MOVES + CUTS + disturbances);
    const some = (): Uint8Array => {
      const rare = draws.below(16);
      if (rare === 0) return draws.bytes(ACKNOWLEDGED);
      return draws.bytes(1 + draws.below(rare < 3 ? MANY : SOME));
    };
    const writer = rival !== null && draws.below(3) === 0 ? rival : main;
    cable.slowMs = [0, draws.below(25), 200, 1_000][draws.below(4)] as number;
    if (choice < writes) writer?.write(some());
    else if (choice < MOVES) this.says(cable, some());
    else if (choice < MOVES + CUTS) writer?.cut();
    else this.disturb(cable);
  }

  private disturb(cable: Cable): void {
    const { draws, main, rival, world } = this;
    this.disturbedUs = world.clock.nowUs;
    const choice = draws.below(20);
    if (choice < 3) main?.purge(draws.below(2) === 0, draws.below(2) === 0);
    else if (choice < 7) this.comeOrGo();
    else if (choice < 10) {
      this.pull(cable);
      world.clock.after(draws.below(3_000), () => this.plug(cable));
    } else if (choice < 12) {
      main?.kill();
      this.comeMain();
    } else if (choice < 14) rival?.kill();
    else if (choice < 17 && main !== null) main.isStalled = true;
    else if (choice === 17) {
      for (let n = 0; n < FLOOD_PIECES; n++) this.says(cable, draws.bytes(FLOOD_BYTES));
    } else this.says(cable, draws.bytes(1));
  }

  private says(cable: Cable, bytes: Uint8Array): void {
    if (cable.isPaused || !cable.isPlugged) return;
    this.oracle.says(bytes);
    cable.says(bytes);
  }

  private pull(cable: Cable): void {
    if (!cable.isPlugged) return;
    this.world.stir();
    void cable.pull();
  }

  private plug(cable: Cable): void {
    // The bridge may have lost its power meanwhile.
    if (this.now() !== cable || cable.isPlugged) return;
    this.world.stir();
    this.device.enter();
    cable.plug();
    this.opened(cable);
  }

  private comeOrGo(): void {
    const { rival, draws } = this;
    if (rival !== null) {
      rival.leave();
      this.rival = null;
      return;
    }
    const name = `other${++this.names}`;
    const [watch, takeover] = [draws.below(3) === 0, draws.below(2) === 0];
    this.rival = new Program(this, name, this.address, watch, takeover && !watch);
  }

  // ---- at rest

  /** Only what is under way still moves. */
  private rest(cable: Cable | null): void {
    this.restsSinceUs = this.world.clock.nowUs;
    this.progressUs = this.restsSinceUs;
    this.rival?.leave();
    this.rival = null;
    if (cable !== null) this.calm(cable);
  }

  private calm(cable: Cable): void {
    cable.slowMs = 0;
    this.plug(cable);
    this.main?.takeAll();
  }

  private look(cable: Cable | null, sinceUs: number): void {
    const { main, oracle, world } = this;
    const { clock, liveness } = world;
    if (cable !== null) this.calm(cable);
    const user = main?.user;
    const isKnown = user?.isKnown === true;
    const left = isKnown ? user.open.filter(({ isPurged }) => !isPurged).length : -1;
    const hasAll = isKnown && user.hasAll;
    const isDone = hasAll && left === 0 && main?.isUp === true;
    const progress = `${left} ${hasAll} ${main?.isUp} ${user?.readTo ?? 0}`;
    if (progress !== this.progress) this.progressUs = clock.nowUs;
    this.progress = progress;
    const isLong = clock.nowUs - sinceUs > REST_MS * 1000;
    if (isDone || (isLong && !liveness.isCalm(clock.nowUs))) {
      if (isLong) this.activate();
      return;
    }
    const { online, onlineSinceUs } = this.device;
    const since = Math.max(this.progressUs, main?.onlineSinceUs ?? 0, onlineSinceUs);
    // An opening waits behind what the relay has queued, for minutes on a slow line.
    const isSlow = this.device.plan.network.bytesPerS > 0;
    const isStuck = !isSlow && clock.nowUs - since > STUCK_MS * 1000;
    if (isStuck && online && liveness.wasCalm(clock.nowUs - 20_000_000)) {
      const what = main?.isUp === true ? `${left} bytes are still under way` : "it is not back";
      oracle.violate(`${main?.claim}: nothing moves without any fault, and ${what}`);
    }
  }
}

/** Two ports of a bridge, as programs use them until the run ends. */
export const serial = (
  world: DriverWorld,
  driver: string,
  device: Device,
  address: string,
): void => {
  for (const index of [0, 1]) new Port(world, driver, device, index, address).begin();
};
