/** `attach` and a raw bridge over links that are lost. */
import { CLIENT_LEFT } from "@blindrelay/agent-sdk/node";
import type { SessionStreams } from "@blindrelay/client-sdk";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { describe, expect, it } from "vitest";
import { attachTo, bytes, started, World } from "./world.ts";

/** What the bridge may send before the local side takes any of it. */
const WINDOW_BYTES = 131_072;

/** The outcome of a call, which takes turns of the world. */
const done = async <Result>(world: World, call: Promise<Result>): Promise<Result> => {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  call.then(over, over);
  await world.run(() => isOver);
  return call;
};

describe("attach to a raw bridge", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    "loses and doubles nothing over lost links, in order %d",
    async (seed) => {
      const world = new World();
      world.tty.plug();
      const { remote, link, got, losses } = await started(world);
      const [down, up] = [bytes(60_000, seed), bytes(60_000, seed + 100)];
      let state = seed;
      const random = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
      };
      let [sent, said, cuts] = [0, 0, 0];
      let step = 0;
      await world.run(() => {
        if (sent < down.length && remote.room > 5_000) {
          const end = sent + 1 + random(4_000);
          remote.write(down.subarray(sent, end));
          sent = Math.min(end, down.length);
        }
        if (said < up.length && !world.tty.isPaused) {
          const end = said + 1 + random(3_000);
          world.tty.says(...up.subarray(said, end));
          said = Math.min(end, up.length);
        }
        if (++step > 3 && cuts < 20 && random(6) === 0) {
          cuts++;
          link.cut();
        }
        return world.tty.device.length >= down.length && got.length >= up.length;
      });
      expect(cuts).toBeGreaterThan(0);
      expect(Buffer.from(world.tty.device).equals(down)).toBe(true);
      expect(Buffer.from(got).equals(up)).toBe(true);
      expect(losses).toEqual([]);
    },
  );

  it("fills a local side that takes nothing with one window, however often the link is lost", async () => {
    const world = new World();
    world.tty.plug();
    const attached = await started(world);
    const { remote, link, got, losses, away } = attached;
    attached.stall();
    const up = bytes(400_000, 7);
    let said = 0;
    for (let cut = 0; cut < 4; cut++) {
      await world.run(() => {
        if (said < up.length && !world.tty.isPaused) {
          world.tty.says(...up.subarray(said, said + 10_000));
          said += 10_000;
        }
        return got.length === WINDOW_BYTES && world.tty.isPaused;
      });
      const before = away.length;
      link.cut();
      await world.run(() => away.length > before && remote.isUp);
      let steps = 0;
      await world.run(() => ++steps > 100);
      expect(got).toHaveLength(WINDOW_BYTES);
    }
    remote.taken(WINDOW_BYTES);
    await world.run(() => got.length === 2 * WINDOW_BYTES);
    expect(Buffer.from(got).equals(Buffer.from(up.subarray(0, got.length)))).toBe(true);
    expect(losses).toEqual([]);
  });

  it("acknowledges nothing of a stream by what it got of the one before", async () => {
    const world = new World();
    world.tty.plug();
    const attached = await started(world);
    const { remote, link, got, losses, away } = attached;
    attached.stall();
    world.tty.says(...bytes(10_000, 3));
    await world.run(() => got.length === 10_000);
    link.cut();
    await world.run(() => away.length === 1 && remote.isUp);
    for (let taken = 0; taken < 10_000; taken += 1_000) remote.taken(1_000);
    let steps = 0;
    await world.run(() => ++steps > 100);
    // The second one waits to be gathered with what comes after it.
    for (const byte of [1, 2]) world.tty.says(byte);
    await world.run(() => got.length === 10_002);
    expect([got.slice(-2), losses]).toEqual([[1, 2], []]);
  });

  it("says with position and number what a replugged port has not taken, and sends it to no other", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, got, losses } = await started(world);
    remote.write(Uint8Array.of(1, 2, 3));
    await world.run(() => world.tty.device.length === 3);
    await world.tty.pull();
    remote.write(Uint8Array.of(4, 5));
    world.tty.plug();
    world.tty.says(7);
    await world.run(() => got.length === 1);
    // The credit that acknowledges the first three was not due yet.
    expect(losses).toEqual([
      { direction: "to the device", outcome: "unknown", from: 0, bytes: 3 },
      { direction: "to the device", outcome: "not sent", from: 3, bytes: 2 },
    ]);
    remote.write(Uint8Array.of(6));
    await world.run(() => world.tty.device.length === 4);
    expect([world.tty.device, got]).toEqual([[1, 2, 3, 6], [7]]);
  });

  it("says which of the device's bytes are gone after more came than is kept", async () => {
    const world = new World();
    world.tty.plug();
    const { got, losses, link } = await started(world);
    const sid = link.sid;
    world.tty.says(1, 2, 3);
    await world.run(() => got.length === 3);
    link.cut();
    link.isDead = true;
    world.forget(sid);
    // The port is paused for a minute; then its oldest bytes go.
    for (let n = 0; n < 30; n++) world.tty.line.data(new Uint8Array(10_000).fill(n));
    expect(world.tty.isPaused).toBe(true);
    world.timer.advance(58_000);
    expect(world.tty.isPaused).toBe(true);
    world.timer.advance(4_000);
    expect(world.tty.isPaused).toBe(false);
    link.isDead = false;
    link.cut();
    const bytes = 300_000 - 262_144;
    await world.run(() => got.length === 3 + 262_144);
    expect(losses).toEqual([{ direction: "from the device", outcome: "lost", from: 3, bytes }]);
  });

  it("gives a port to who came first, names that user, and gives it on when nothing comes from it", async () => {
    const world = new World();
    world.tty.plug();
    const first = await started(world, { user: "ada" });
    await expect(started(world, { user: "bob" })).rejects.toThrow("in use by ada");
    first.link.isDead = true;
    const askedAt = world.timer.now();
    const second = await started(world, { user: "bob" });
    expect(world.timer.now() - askedAt).toBeGreaterThanOrEqual(10_000);
    expect(world.tty.line.usage).toMatchObject({ user: { user: "bob" } });
    second.remote.write(Uint8Array.of(9));
    await world.run(() => world.tty.device.length === 1);
  });

  it("tells one that was silent that its port was given on, and writes nothing of it after that", async () => {
    const world = new World();
    world.tty.plug();
    const first = await started(world, { user: "ada" });
    const { receive } = world;
    world.receive = (sid, method, params, answer) => {
      // As a process that is stopped, and goes on later.
      if (method !== "system.ping") receive.call(world, sid, method, params, answer);
    };
    const second = await started(world, { user: "bob" });
    world.receive = receive;
    first.remote.write(Uint8Array.of(1));
    second.remote.write(Uint8Array.of(2));
    await world.run(() => world.tty.device.length > 0 && first.away.length > 0);
    expect([world.tty.device, first.away[0]]).toEqual([[2], "bob took over"]);
    second.remote.stop();
    world.forget(second.link.sid, CLIENT_LEFT);
    await world.run(() => first.remote.isUp);
    world.tty.says(3);
    await world.run(() => first.got.length === 1);
    expect(world.tty.device).toEqual([2]);
    expect(first.losses).toEqual([
      { direction: "to the device", outcome: "not sent", from: 0, bytes: 1 },
    ]);
  });

  it("keeps a port that comes back for nobody whose stream ended with the port", async () => {
    const world = new World({ ports: 2 });
    for (const port of world.ports) port.plug();
    const old = world.client();
    let isWriting = false;
    const ended: unknown[] = [];
    const write = { port: "tty0", stream: 1 };
    const open = (streams: SessionStreams): void => {
      streams.outgoing(1, { writable: () => undefined, ended: (error) => ended.push(error) });
    };
    void old.agent.callWithStreams("serial.write", write, open).then(() => {
      isWriting = true;
    });
    await world.run(() => isWriting);
    await world.tty.pull();
    world.tty.plug();
    await world.run(() => ended.length === 1);
    expect(world.tty.line.usage).toMatchObject({ user: null });
    // It goes on with the other port.
    const beat = (): void => {
      old.agent.call("serial.status", { port: "tty1" }).catch(() => undefined);
      world.timer.set(1_000, beat);
    };
    beat();
    const { remote } = await started(world, { port: "tty0" });
    remote.write(Uint8Array.of(1));
    await world.run(() => world.tty.device.length === 1);
  });

  it("lets one take over only where the port's access says so", async () => {
    const strict = new World();
    strict.tty.plug();
    await started(strict, { user: "ada" });
    await expect(started(strict, { takeover: true })).rejects.toThrow("not takeover");
    const open = new World({ access: "takeover" });
    open.tty.plug();
    const first = await started(open, { user: "ada" });
    await expect(started(open)).rejects.toThrow("in use by ada");
    await started(open, { takeover: true, user: "bob" });
    await open.run(() => first.away.length > 0);
    expect(first.away[0]).toContain("bob took over");
    const closed = new World({ access: "read-only" });
    closed.tty.plug();
    await expect(started(closed)).rejects.toThrow("read-only");
    await started(closed, { watch: true });
  });

  it("says to one that has the port again what another's writing has made uncertain", async () => {
    const world = new World({ access: "takeover" });
    world.tty.plug();
    const first = await started(world, { user: "ada" });
    world.tty.slowMs = 1_000;
    for (const byte of [1, 2, 3, 4]) {
      first.remote.write(Uint8Array.of(byte));
      const sentAt = world.timer.now();
      await world.run(() => world.timer.now() > sentAt + 20);
    }
    const second = await started(world, { takeover: true, user: "bob" });
    second.remote.write(Uint8Array.of(7));
    await world.run(() => world.tty.device.includes(7));
    second.remote.stop();
    world.forget(second.link.sid, CLIENT_LEFT);
    await world.run(() => first.remote.isUp);
    first.remote.write(Uint8Array.of(8));
    await world.run(() => world.tty.device.includes(8));
    // Two of its bytes have come; which ones, it cannot know.
    expect(world.tty.device).toEqual([1, 7, 8]);
    expect(first.losses).toEqual([
      { direction: "to the device", outcome: "unknown", from: 0, bytes: 4 },
    ]);
  });

  it("takes another's bytes for none of its own, though nothing of it had come between", async () => {
    const world = new World({ access: "takeover" });
    world.tty.plug();
    const first = await started(world, { user: "ada" });
    first.remote.write(Uint8Array.of(1, 2, 3));
    await world.run(() => world.tty.device.length === 3);
    const second = await started(world, { takeover: true, user: "bob" });
    second.remote.write(Uint8Array.of(4, 5, 6, 7));
    // What it wrote is lost with its link, and it stays away.
    second.link.cut();
    second.link.isDead = true;
    await world.run(() => first.away.length > 0 && first.remote.isUp);
    first.remote.write(Uint8Array.of(8, 9));
    await world.run(() => world.tty.device.length === 5);
    first.remote.stop();
    world.forget(first.link.sid, CLIENT_LEFT);
    second.link.isDead = false;
    second.link.cut();
    await world.run(() => second.away.length > 0 && second.remote.isUp);
    second.remote.write(Uint8Array.of(10));
    await world.run(() => world.tty.device.includes(10));
    expect(world.tty.device).toEqual([1, 2, 3, 8, 9, 10]);
    expect([first.losses, second.losses]).toEqual([
      [],
      [{ direction: "to the device", outcome: "unknown", from: 3, bytes: 4 }],
    ]);
  });

  it("shows a watcher what the writer reads, and does not wait for one that stalls", async () => {
    const world = new World();
    world.tty.plug();
    const writer = await started(world);
    const watcher = await started(world, { watch: true });
    watcher.stall();
    const total = 600_000;
    let said = 0;
    await world.run(() => {
      if (said < total && !world.tty.isPaused) {
        world.tty.says(...bytes(8_000, said));
        said += 8_000;
      }
      return writer.got.length >= total;
    });
    expect(watcher.got.length).toBeLessThan(total);
    expect(
      Buffer.from(watcher.got).equals(Buffer.from(writer.got.slice(0, watcher.got.length))),
    ).toBe(true);
  });

  it("the next process with the same claim goes on at once, without the bytes of the one before", async () => {
    const world = new World();
    world.tty.plug();
    const claim = "c".repeat(22);
    const first = await started(world, { claim });
    world.tty.says(1, 2);
    await world.run(() => first.got.length === 2);
    first.link.isDead = true;
    world.tty.says(3);
    const askedAt = world.timer.now();
    const second = await started(world, { claim });
    world.tty.says(4);
    await world.run(() => second.got.includes(4));
    expect(world.timer.now() - askedAt).toBeLessThan(1_000);
    expect(second.got.filter((byte) => byte <= 2)).toEqual([]);
  });

  it("loses nothing of the next process with a claim, though bytes of the one before still wait", async () => {
    const world = new World();
    world.tty.plug();
    world.tty.slowMs = 2_000;
    const claim = "c".repeat(22);
    const first = await started(world, { claim });
    for (const byte of [1, 2, 3]) {
      first.remote.write(Uint8Array.of(byte));
      const sentAt = world.timer.now();
      await world.run(() => world.timer.now() > sentAt + 20);
    }
    first.link.isDead = true;
    const { remote, link, away, losses } = await started(world, { claim });
    remote.write(Uint8Array.of(4, 5));
    const sentAt = world.timer.now();
    await world.run(() => world.timer.now() > sentAt + 20);
    link.cut();
    await world.run(() => away.length === 1 && remote.isUp);
    remote.write(Uint8Array.of(6, 7));
    await world.run(() => world.tty.device.length === 7);
    expect([world.tty.device, losses]).toEqual([[1, 2, 3, 4, 5, 6, 7], []]);
  });

  it("purges nothing that is written after it, though its call has to wait", async () => {
    const world = new World();
    world.tty.plug();
    world.tty.slowMs = 2_000;
    const { remote, link, losses } = await started(world);
    remote.write(Uint8Array.of(1));
    const wroteAt = world.timer.now();
    await world.run(() => world.timer.now() > wroteAt + 20);
    link.holdCalls();
    const purged = remote.purge(false, true);
    remote.write(Uint8Array.of(2));
    const askedAt = world.timer.now();
    await world.run(() => world.timer.now() > askedAt + 20);
    link.releaseCalls();
    await done(world, purged);
    await world.run(() => world.tty.device.length === 2);
    expect([world.tty.device, losses]).toEqual([[1, 2], []]);
  });

  it("knows what a purge has passed over in another opening, though it is told before the answer", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, got, away } = await started(world);
    link.holdCalls();
    await world.tty.pull();
    world.tty.plug();
    await world.run(() => away.length === 1);
    world.tty.says(1, 2, 3);
    // Both come in one piece: the bridge purges before its answer to the other call is on its way.
    await world.run(() => link.heldCalls === 1);
    const purged = remote.purge(true, false);
    link.releaseCalls();
    await done(world, purged);
    await world.run(() => remote.isUp);
    world.tty.says(4);
    await world.run(() => got.length > 0);
    link.cut();
    await world.run(() => away.length === 2 && remote.isUp);
    world.tty.says(5);
    await world.run(() => got.includes(5));
    expect(got).toEqual([4, 5]);
  });

  it("runs a sequence of control lines before what is written after it", async () => {
    const world = new World();
    world.tty.plug();
    const { remote } = await started(world);
    remote.write(Uint8Array.of(1));
    let ran = false;
    const steps = [
      { dtr: false, rts: true },
      { rts: false, after_ms: 5 },
    ];
    void remote.signals(steps).then(() => {
      ran = true;
    });
    remote.write(Uint8Array.of(2));
    await world.run(() => world.tty.device.length === 1);
    await world.run(() => ran && world.tty.device.length === 2);
    expect(world.tty.control).toEqual(['{"dtr":false,"rts":true}', '{"rts":false}']);
    const tooMany = remote.signals(Array.from({ length: 33 }, () => ({ dtr: true })));
    let refused: unknown;
    tooMany.catch((error) => {
      refused = error;
    });
    await world.run(() => refused !== undefined);
    expect(refused).toMatchObject({ remote: { message: "steps is a list of at most 32" } });
  });

  it("asks a bridge that restarts for the settings that it had made, not for those that it refused", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, away } = await started(world);
    const set: object[] = [];
    let refuses = false;
    world.tty.configured = (settings) => {
      if (refuses && settings.parity !== "none") throw new Error("only the rate can change");
      set.push(settings);
    };
    await done(world, remote.configure({ baud_rate: 9_600 }));
    refuses = true;
    const refused = [remote.configure({ parity: "even" }), remote.configure({ parity: "odd" })];
    const outcomes = await done(world, Promise.allSettled(refused));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await world.tty.pull();
    world.tty.raw.settings = DEFAULT_SETTINGS;
    world.tty.plug();
    await world.run(() => away.length > 0 && remote.isUp && set.length === 2);
    expect(set[1]).toMatchObject({ baudRate: 9_600, parity: "none" });
  });

  it("asks again for a setting that was made without an answer, though a later one was refused", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, away } = await started(world);
    const rates: number[] = [];
    world.tty.configured = ({ baudRate }) => {
      if (baudRate === 12_345) throw new Error("there is no such rate");
      rates.push(baudRate);
    };
    // The bridge's link is lost before its answer, and its session goes on.
    link.loses = 1;
    remote.configure({ baud_rate: 9_600 }).catch(() => undefined);
    await world.run(() => link.loses === 0);
    link.end("the session does not carry it any more");
    await world.run(() => away.length === 1 && remote.isUp);
    await done(world, Promise.allSettled([remote.configure({ baud_rate: 12_345 })]));
    await world.tty.pull();
    world.tty.raw.settings = DEFAULT_SETTINGS;
    rates.length = 0;
    world.tty.plug();
    await world.run(() => away.length === 2 && remote.isUp && rates.length === 1);
    expect(rates).toEqual([9_600]);
  });

  it("drops nothing of the device for a purge whose answer was lost, once the port is resumed", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, got, away } = await started(world);
    // The bridge's link is lost before its answer, and its session goes on.
    link.loses = 1;
    remote.purge(true, false).catch(() => undefined);
    await world.run(() => link.loses === 0);
    link.end("the session does not carry it any more");
    await world.run(() => away.length === 1 && remote.isUp);
    world.tty.says(1, 2);
    await world.run(() => world.tty.line.counts.bytes_in === 2);
    let turns = 100;
    await world.run(() => --turns === 0);
    expect(got).toEqual([1, 2]);
  });

  it("runs control lines and settings after all that was written before, though credit is short", async () => {
    const world = new World();
    world.tty.plug();
    const { remote } = await started(world);
    const had: number[] = [];
    world.tty.slowMs = 20;
    world.tty.configured = () => had.push(world.tty.device.length);
    remote.write(bytes(150_000, 1));
    const first = remote.configure({ baud_rate: 9_600 });
    remote.write(bytes(50_000, 2));
    const second = remote.configure({ baud_rate: 57_600 });
    remote.write(Uint8Array.of(1));
    await done(world, Promise.all([first, second]));
    await world.run(() => world.tty.device.length === 200_001);
    expect(had).toEqual([150_000, 200_000]);
    expect(world.tty.device).toEqual([...bytes(150_000, 1), ...bytes(50_000, 2), 1]);
  });

  it("runs settings that wait for bytes at once if those are purged, and after their rest if the port was lost", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, away, losses } = await started(world);
    const set: { rate: number; had: number }[] = [];
    world.tty.slowMs = 1_000;
    world.tty.configured = ({ baudRate }) =>
      set.push({ rate: baudRate, had: world.tty.device.length });
    remote.write(bytes(150_000, 1));
    const first = remote.configure({ baud_rate: 9_600 });
    await done(world, remote.purge(false, true));
    await done(world, first);
    remote.write(bytes(150_000, 2));
    const [begun] = set.map(({ had }) => had);
    expect(begun).toBeLessThan(150_000);
    const sent = world.tty.device.length;
    const second = remote.configure({ baud_rate: 57_600 });
    link.cut();
    remote.write(Uint8Array.of(3));
    await world.run(() => away.length === 1 && remote.isUp);
    await done(world, second);
    await world.run(() => world.tty.device.at(-1) === 3);
    const rates = set.filter(({ rate }, n) => rate !== set[n - 1]?.rate);
    expect(rates.map(({ rate }) => rate)).toEqual([9_600, 57_600]);
    expect(world.tty.device.slice(rates[1]?.had)).toEqual([3]);
    expect(world.tty.device.slice(-150_001)).toEqual([...bytes(150_000, 2), 3]);
    expect([sent > 0, losses]).toEqual([true, []]);
  });

  it("runs settings that wait for bytes which are lost with another opening", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, away } = await started(world);
    world.tty.slowMs = 1_000;
    remote.write(bytes(150_000, 2));
    const set = remote.configure({ baud_rate: 57_600 });
    await world.tty.pull();
    await world.run(() => away.length === 1);
    world.tty.plug();
    await done(world, set);
    expect(remote.settings?.baud_rate).toBe(57_600);
  });

  it("says at its end what was never sent", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, losses, link } = await started(world);
    world.tty.slowMs = 1_000;
    remote.write(bytes(10, 1));
    await world.run(() => world.tty.device.length === 10);
    link.cut();
    remote.write(bytes(20, 2));
    remote.stop();
    remote.stop();
    const lost = { direction: "to the device", outcome: "not sent", from: 10, bytes: 20 };
    expect(losses).toEqual([lost]);
    const never = attachTo(world);
    never.remote.write(Uint8Array.of(1, 2));
    never.remote.stop();
    expect(never.losses).toEqual([{ ...lost, from: null, bytes: 2 }]);
  });

  it("runs no more of a session that is over than what runs already, and then what came later", async () => {
    const world = new World();
    world.tty.plug();
    const gone = await started(world, { watch: true });
    for (let n = 0; n < 20; n++) {
      const slow = [{ rts: true }, { rts: false, after_ms: 10_000 }];
      gone.remote.signals(slow).catch(() => undefined);
    }
    let turns = 50;
    await world.run(() => --turns === 0);
    gone.remote.stop();
    gone.link.isDead = true;
    world.forget(gone.link.sid);
    const { remote } = await started(world);
    remote.write(Uint8Array.of(1));
    const begun = world.timer.now();
    await world.run(() => world.tty.device.length === 1);
    expect(world.timer.now() - begun).toBeLessThan(10_001);
    expect(world.tty.control).toHaveLength(2);
  });

  it("sends what was written before the port was there", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, losses } = attachTo(world);
    remote.write(Uint8Array.of(1, 2));
    void remote.start();
    remote.write(Uint8Array.of(3));
    await world.run(() => world.tty.device.length === 3);
    expect([world.tty.device, losses]).toEqual([[1, 2, 3], []]);
  });

  it("sets before them what was set before the port was there, and nothing of a port that it never had", async () => {
    const world = new World();
    world.tty.plug();
    const { remote } = attachTo(world);
    const set: string[] = [];
    world.tty.configured = ({ baudRate }) => set.push(`${baudRate} at ${world.tty.device.length}`);
    const first = remote.configure({ baud_rate: 57_600 });
    remote.write(Uint8Array.of(1, 2));
    const second = remote.configure({ baud_rate: 9_600 });
    void remote.start();
    await done(world, Promise.all([first, second]));
    expect(set.slice(0, 2)).toEqual(["57600 at 0", "9600 at 2"]);
    const refused = attachTo(world).remote;
    const never = refused.configure({ baud_rate: 300 }).catch((error) => error.code);
    refused.stop();
    const late = refused.configure({ baud_rate: 300 }).catch((error) => error.code);
    expect(await Promise.all([never, late])).toEqual(["CLOSED", "CLOSED"]);
    expect(set.join()).not.toContain("300");
  });

  it("sends it to a bridge from before serial.resume, too", async () => {
    const world = new World();
    const { receive } = world;
    world.receive = (sid, method, params, answer) => {
      if (method !== "serial.resume") receive.call(world, sid, method, params, answer);
      else answer(null, Object.assign(new Error("unknown"), { code: -32_601 }));
    };
    world.tty.plug();
    const { remote, losses } = attachTo(world);
    remote.write(Uint8Array.of(1, 2));
    void remote.start();
    await world.run(() => world.tty.device.length === 2);
    expect([world.tty.device, losses]).toEqual([[1, 2], []]);
  });

  it("sends it under the number that the port expects, and refuses more than is kept", async () => {
    const world = new World();
    world.tty.plug();
    const claim = "c".repeat(22);
    const first = await started(world, { claim });
    first.remote.write(Uint8Array.of(1, 2));
    await world.run(() => world.tty.device.length === 2);
    first.link.isDead = true;
    const { remote, losses, link } = attachTo(world, { claim });
    expect(() => remote.write(new Uint8Array(600_000))).toThrow("room");
    remote.write(Uint8Array.of(3));
    void remote.start();
    await world.run(() => world.tty.device.length === 3);
    link.cut();
    remote.write(Uint8Array.of(4));
    await world.run(() => world.tty.device.length === 4);
    expect([world.tty.device, losses]).toEqual([[1, 2, 3, 4], []]);
  });

  it("resumes at growing distances a port that its bridge ends again and again", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, away } = await started(world);
    let resumes = 0;
    world.answers = (answer) => {
      if ("opening" in (answer as object)) {
        resumes++;
        const read = { stream: 2 * resumes + 1, bytes: 0, error: "ended" };
        world.timer.set(1, () =>
          link.queueDown(link.sid, JSON.stringify({ method: "stream.end", params: read })),
        );
      }
      return answer;
    };
    const startedAt = world.timer.now();
    link.cut();
    await world.run(() => world.timer.now() - startedAt >= 60_000);
    expect(away.length).toBeGreaterThan(10);
    expect(resumes).toBeLessThan(30);
    world.answers = (answer) => answer;
    await world.run(() => remote.isUp);
  });

  it("goes on, and says so, though another bridge told it of more under the same opening", async () => {
    const world = new World();
    world.tty.plug();
    const { remote, link, got, losses } = await started(world);
    world.tty.says(1, 2);
    await world.run(() => got.length === 2);
    const { opening } = world.tty.line;
    const lost = { port: world.tty.name, opening, from: 2, bytes: 1_000 };
    const params = JSON.stringify({ jsonrpc: "2.0", method: "serial.lost", params: lost });
    link.queueDown(link.sid, params);
    await world.run(() => losses.length > 0);
    remote.write(Uint8Array.of(7));
    link.cut();
    await world.run(() => remote.isUp && world.tty.device.length > 0);
    world.tty.says(3, 4);
    await world.run(() => got.length === 4);
    link.cut();
    world.tty.says(5);
    await world.run(() => got.length === 5);
    expect(got).toEqual([1, 2, 3, 4, 5]);
    expect(losses.slice(1)).toEqual([
      { direction: "from the device", outcome: "unknown", from: null, bytes: null },
    ]);
  });

  it("answers a bridge that asks without end once at a time", async () => {
    const world = new World();
    world.tty.plug();
    const { link } = await started(world);
    let pings = 0;
    const { receive } = world;
    world.receive = (sid, method, params, answer) => {
      if (method === "system.ping") pings++;
      receive.call(world, sid, method, params, answer);
    };
    const asked = JSON.stringify({ method: "serial.asked", params: { port: "tty0" } });
    for (let n = 0; n < 100; n++) link.queueDown(link.sid, asked);
    let turns = 300;
    await world.run(() => turns-- === 0);
    expect(pings).toBeGreaterThan(0);
    expect(pings).toBeLessThan(60);
    const before = pings;
    link.queueDown(link.sid, asked);
    await world.run(() => pings > before);
  });
});
