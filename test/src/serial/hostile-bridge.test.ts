/**
 * A bridge that answers, grants and says anything, in orders drawn at random: a program that uses
 * its port neither ends nor stops, and works with the bridge that replaces it.
 */
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { CallError } from "@blindrelay/client-sdk";
import { OutgoingStream } from "@blindrelay/protocol/streams";
import { expect, it, vi } from "vitest";
import { attachTo, World } from "./world.ts";

const SEEDS = 60;
const STEPS = 40;
const ODD = [null, -1, -5, 0.5, 3, 70_000, 2 ** 53 - 1, 1e300, "5", "", true, {}, [], [1], "xyz"];
const MEMBERS = ["opening", "read", "written", "turn", "settings", "port"];
const NOTICES = ["serial.lost", "serial.changed", "serial.asked", "stream.credit", "stream.end"];

it("ends no program, whatever it answers, grants and says", async () => {
  const { write } = OutgoingStream.prototype;
  let idle = 0;
  let written = 1;
  // An endless loop could not be reported.
  vi.spyOn(OutgoingStream.prototype, "write").mockImplementation(function (
    this: OutgoingStream,
    bytes,
  ) {
    const sent = write.call(this, bytes);
    written = this.id;
    idle = sent > 0 ? 0 : idle + 1;
    if (idle > 1_000) throw new Error("it sends nothing, for ever");
    return sent;
  });
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seededRandom(seed);
    const below = (n: number): number => (random(1)[0] as number) % n;
    const odd = (): unknown => ODD[below(ODD.length)];
    const world = new World();
    let isWell = true;
    let opening = "";
    world.answers = (answer) => {
      if (isWell || below(2) === 0) return answer;
      if (below(6) === 0) return odd();
      const name = MEMBERS[below(MEMBERS.length)] as string;
      const drawn = name === "settings" && below(2) === 0 ? { baud_rate: odd() } : odd();
      return { ...(answer as object), [name]: drawn };
    };
    world.tty.plug();
    opening = world.tty.line.opening ?? "";
    const { remote, link } = attachTo(world);
    const refused = (error: unknown): void => expect(error).toBeInstanceOf(CallError);
    const said = (): void => {
      const params = {
        ...{ stream: 1 + below(8), port: "tty0", opening },
        ...{ bytes: odd(), from: odd() },
        ...(below(4) === 0 && { error: odd() }),
      };
      const method = NOTICES[below(NOTICES.length)] as string;
      link.queueDown(link.sid, JSON.stringify({ method, params: below(9) === 0 ? odd() : params }));
    };
    const grant = (): void => {
      const params = { stream: written, bytes: 1 + below(200_000) };
      link.queueDown(link.sid, JSON.stringify({ method: "stream.credit", params }));
    };
    let isStarted = false;
    isWell = below(2) === 0;
    const start = (): void => {
      remote.start().then(
        () => {
          isStarted = true;
        },
        (error) => {
          refused(error);
          world.timer.set(1_000, start);
        },
      );
    };
    start();
    const acts = [
      () => remote.write(random(1 + below(200))),
      () => remote.write(random(1 + below(200))),
      () => world.tty.says(...random(1 + below(200))),
      said,
      said,
      grant,
      () => link.cut(),
      () => void remote.configure({ baud_rate: 9_600 }).catch(refused),
      () => void remote.purge(below(2) === 0, true).catch(refused),
      () => void remote.status().catch(refused),
    ];
    for (let step = 0; step < STEPS; step++) {
      (acts[below(acts.length)] as () => void)();
      let turns = below(2) * below(30);
      await world.run(() => turns-- <= 0);
    }
    isWell = true;
    await world.tty.pull();
    world.tty.plug();
    let left = 20_000;
    await world.run(() => (isStarted && remote.isUp) || left-- <= 0);
    expect(remote.isUp, `seed ${seed}`).toBe(true);
    remote.stop();
  }
});
