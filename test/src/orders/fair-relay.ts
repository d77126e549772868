/**
 * From here on the relay is fair: what would become of the clients? It delivers everything in
 * order, and at worst everything twice, the second time while the session is being opened. Every
 * client makes a call, and its session ends only by the rules of section 2; nobody gives up by
 * hand.
 */
import type { ClientEffect } from "@blindrelay/protocol/session";
import type { Promised } from "./promises.ts";
import type { World } from "./world.ts";

/** One way. */
const HOP_MS = 50;
/** How much later a second copy arrives: after the first ping, before the first call's end. */
const COPY_MS = 170;
/** Several times what the slowest needs: silence after a first ping, and then a repeat. */
const PATIENCE_MS = 30_000;

/** What is broken, if anything; the world stays as it is. */
export const brokenWhenFair = (world: World): Promised | null => {
  for (const copies of [false, true]) {
    const problem = new FairRun(world.copy(), copies).run();
    if (problem !== null) return problem;
  }
  return null;
};

class FairRun {
  private readonly world: World;
  private readonly copies: boolean;
  private readonly events: { at: number; order: number; run: () => void }[] = [];
  private order = 0;
  private readonly served = new Set<number>();
  private readonly called = new Map<number, string>();

  constructor(world: World, copies: boolean) {
    this.world = world;
    this.copies = copies;
  }

  run(): Promised | null {
    const { world } = this;
    // What was idle before is idle for longer.
    world.now += 1_000;
    const end = world.now + PATIENCE_MS;
    world.people.forEach(({ session }, client) => {
      const outstanding = session.outstanding();
      if (session.state === "idle") this.act(client, session.open(world.now));
      else if (outstanding !== null) this.send(client, outstanding);
      this.call(client);
    });
    while (this.served.size < world.people.length && world.violation === null) {
      const at = this.nextAt();
      if (at > end) return "served";
      world.now = Math.max(world.now, at);
      this.runEvents();
      world.people.forEach(({ session }, client) => {
        this.act(client, session.timeout(world.now));
      });
    }
    return world.violation;
  }

  private nextAt(): number {
    const times = this.world.people.map(({ session }) => session.wakeAt() ?? Infinity);
    return Math.min(this.events[0]?.at ?? Infinity, ...times);
  }

  private runEvents(): void {
    for (let event = this.events[0]; event !== undefined; event = this.events[0]) {
      if (event.at > this.world.now) return;
      this.events.shift();
      event.run();
    }
  }

  private after(ms: number, run: () => void): void {
    this.events.push({ at: this.world.now + ms, order: this.order++, run });
    this.events.sort((a, b) => a.at - b.at || a.order - b.order);
  }

  /** `deliver`, a hop later, and a second time where that is asked for. */
  private carry(deliver: () => void): void {
    this.after(HOP_MS, deliver);
    if (this.copies) this.after(HOP_MS + COPY_MS, deliver);
  }

  private send(client: number, text: string): void {
    this.carry(() => {
      const answer = this.world.deliverToAgent(text);
      if (answer !== null) this.carry(() => this.deliver(client, answer));
    });
  }

  private deliver(client: number, text: string): void {
    const effects = this.world.deliverToClient(client, text);
    this.act(client, effects, true);
    const call = this.called.get(client);
    if (call === undefined) return;
    for (const effect of effects) {
      if (effect.kind !== "message") continue;
      const { id, result } = JSON.parse(Buffer.from(effect.plaintext).toString());
      if (String(id) === call && result !== undefined) this.served.add(client);
    }
  }

  private act(client: number, effects: readonly ClientEffect[], noted = false): void {
    if (!noted) this.world.act(client, effects);
    for (const effect of effects) {
      if (effect.kind === "send") this.send(client, effect.text);
      if (effect.kind === "opened") this.call(client);
      if (effect.kind === "abandoned") this.called.delete(client);
    }
  }

  private call(client: number): void {
    const person = this.world.person(client);
    const id = 2 + person.calls;
    const text = this.world.call(client);
    if (text === null) return;
    this.called.set(client, String(id));
    this.send(client, text);
  }
}
