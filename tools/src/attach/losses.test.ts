/**
 * An oracle for "nothing is duplicated, a loss is said": a device and a program that know every
 * byte, over links that are lost for a moment or for minutes, and replugged ports, in orders drawn
 * at random.
 */
import { expect, it } from "vitest";
import type { Loss } from "./remote-port.ts";
import { bytes, started, World } from "./testing/world.ts";

/** By hand: RESUME_SEEDS=200. */
const SEEDS = Number(process.env.RESUME_SEEDS ?? 8);
const STEPS = 60;

/** One opening of the port, as its device knows it. */
interface Opening {
  readonly said: number[];
  /** Where in `world.tty.device` its bytes begin. */
  readonly from: number;
  /** What the program was told of its own bytes when the opening was over, by number. */
  readonly told: Loss[];
}

class Oracle {
  readonly openings = new Map<string, Opening>();
  readonly written: number[] = [];
  private opening: string | null = null;
  private at = 0;
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  plugged(): void {
    const { opening } = this.world.tty.line;
    const from = this.world.tty.device.length;
    this.openings.set(opening as string, { said: [], from, told: [] });
  }

  says(more: Uint8Array): void {
    this.now().said.push(...more);
    this.world.tty.line.data(more);
  }

  /** The next bytes that come to the program are the device's next ones. */
  data(came: Uint8Array, opening: string): void {
    this.follow(opening);
    const { said } = this.openings.get(opening) as Opening;
    expect([...came]).toEqual(said.slice(this.at, this.at + came.length));
    this.at += came.length;
  }

  /** `opening`: the one that the client knows, before a resume changes it. */
  lost(loss: Loss, opening: string): void {
    const { direction, from, bytes: count } = loss;
    if (direction === "to the device") {
      this.openings.get(opening)?.told.push(loss);
      return;
    }
    if (from !== this.at) {
      // It is the beginning of another opening.
      expect(from).toBe(0);
      this.opening = null;
      this.at = 0;
    }
    this.at += count as number;
  }

  /** The client knows another opening: what became of the bytes that it had for the one before. */
  follow(opening: string): void {
    if (this.opening === opening) return;
    if (this.opening !== null) this.at = 0;
    this.opening = opening;
  }

  /** How many bytes the device has when everything that is not lost has come. */
  owed(opening: string): number {
    const { from } = this.openings.get(opening) as Opening;
    return from + this.written.length - this.begin(opening);
  }

  /** Everything has come to rest: accounts for every byte. */
  settle(opening: string): void {
    this.follow(opening);
    const begin = this.begin(opening);
    const { from, said } = this.openings.get(opening) as Opening;
    expect(this.world.tty.device.slice(from)).toEqual(this.written.slice(begin));
    expect(this.at).toBe(said.length);
  }

  /** Which of the program's bytes is the opening's first; checks those before. */
  private begin(opening: string): number {
    const all = [...this.openings.values()];
    const last = this.openings.get(opening) as Opening;
    let begin = 0;
    for (const [index, { from, told }] of all.slice(0, all.indexOf(last)).entries()) {
      const end = (all[index + 1] as Opening).from;
      const device = this.world.tty.device.slice(from, end);
      expect(device).toEqual(this.written.slice(begin, begin + device.length));
      const sum = (outcome: Loss["outcome"]): number =>
        told.reduce((all, loss) => all + (loss.outcome === outcome ? (loss.bytes ?? 0) : 0), 0);
      // Without a word everything was acknowledged, or the client was never there.
      const sure = told[0]?.from ?? device.length;
      expect(device.length).toBeGreaterThanOrEqual(sure);
      expect(device.length).toBeLessThanOrEqual(sure + sum("unknown"));
      begin += sure + sum("unknown") + sum("not sent");
    }
    return begin;
  }

  private now(): Opening {
    return this.openings.get(this.world.tty.line.opening as string) as Opening;
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
    const world = new World();
    const oracle = new Oracle(world);
    world.tty.plug();
    oracle.plugged();
    const known = (): string => remoteOf().opening;
    const attached = await started(world, {
      sees: {
        data: (came) => oracle.data(came, known()),
        lost: (loss) => oracle.lost(loss, known()),
      },
    });
    const { remote, link } = attached;
    function remoteOf(): { opening: string; readAt: number; isUp: boolean } {
      return remote as unknown as { opening: string; readAt: number; isUp: boolean };
    }
    const pass = async (turns: number): Promise<void> => {
      let left = turns;
      await world.run(() => left-- <= 0);
    };
    for (let step = 0; step < STEPS; step++) {
      const choice = random(20);
      world.tty.slowMs = random(2) * random(25);
      if (choice < 7 && remote.room > 6_000) {
        const more = bytes(1 + random(5_000), seed * 1_000 + step);
        oracle.written.push(...more);
        remote.write(more);
      } else if (choice < 14) {
        if (!world.tty.isPaused) oracle.says(bytes(1 + random(5_000), seed * 2_000 + step));
      } else if (choice < 18) link.cut();
      else if (choice === 18) {
        await world.tty.pull();
        world.tty.plug();
        oracle.plugged();
      } else {
        // Away for longer than the port is paused: its oldest bytes go.
        const { sid } = link;
        link.cut();
        link.isDead = true;
        world.forget(sid);
        world.timer.advance(61_000);
        for (let n = 0; n < 28; n++) oracle.says(bytes(10_000, seed * 3_000 + step + n));
        link.isDead = false;
        link.cut();
      }
      await pass(random(40));
    }
    await world.run(() => {
      const { said } = oracle.openings.get(known()) as Opening;
      return remote.isUp && known() === world.tty.line.opening && remoteOf().readAt === said.length;
    });
    await world.run(() => world.tty.device.length >= oracle.owed(known()));
    oracle.settle(known());
  },
);
