/** `attach` and a raw bridge, with their streams, sessions and a link between that is lost. */

import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import type { Agent as BridgeAgent, SessionPart } from "@blindrelay/agent-sdk/node";
import { type Agent, CallError, type SessionStreams } from "@blindrelay/client-sdk";
import { StreamTable } from "@blindrelay/protocol/streams";
import { describe, expect, it } from "vitest";
import { rawProgram } from "../bridge/raw.ts";
import { type Access, RawPort } from "../bridge/raw-port.ts";
import { DEFAULT_SETTINGS, NO_STATUS, type OpenPort } from "../serial/port.ts";
import { type Loss, RemotePort } from "./remote-port.ts";

type Handler = (params: unknown, context: { readonly sid: string }) => unknown;
type Send = () => void;

const LIMIT_STEPS = 200_000;

/** A bridge whose agent and port can be replaced, and a link that delivers when it is told to. */
class World {
  readonly timer = new ManualTimer();
  readonly line: RawPort;
  /** What the device got, and what the port still accepts of the next writes. */
  readonly device: number[] = [];
  isPaused = false;
  control: string[] = [];
  private user: { data(bytes: Uint8Array): void; end(reason: string): Promise<void> } | null = null;
  private handlers = new Map<string, Handler>();
  private part: SessionPart | null = null;
  /** Sessions that the agent holds, and when each was heard. */
  private held = new Map<string, number>();
  private readonly clients: LinkedClient[] = [];

  constructor(access: Access = "first") {
    this.line = new RawPort("tty0", access, this.timer);
  }

  /** Opens the port: the bridge's agent is a new one. */
  plug(): void {
    this.handlers = new Map();
    const port: OpenPort = {
      write: async (bytes) => void this.device.push(...bytes),
      pause: () => {
        this.isPaused = true;
      },
      resume: () => {
        this.isPaused = false;
      },
      configure: async () => undefined,
      control: async (lines) => void this.control.push(JSON.stringify(lines)),
      status: async () => NO_STATUS,
      close: async () => undefined,
    };
    const options = { line: this.line, names: ["tty0", "modem"], timer: this.timer };
    const { program, user } = rawProgram(port, DEFAULT_SETTINGS, options);
    program({
      handle: (method: string, handler: Handler) => this.handlers.set(method, handler),
      emit: () => 0,
      attach: (part: SessionPart) => {
        this.part = part;
        return {
          maxPlaintext: 47_000,
          send: (sid: string, text: string) => this.toClient(sid, text),
          heardAt: (sid: string) => this.held.get(sid) ?? null,
        };
      },
    } as unknown as BridgeAgent);
    this.user = user;
  }

  async pull(): Promise<void> {
    await this.user?.end("unplugged");
    this.part?.lost(null, "the agent stopped");
    this.held.clear();
    this.user = null;
    for (const client of this.clients) client.cut();
  }

  says(...bytes: number[]): void {
    this.user?.data(Uint8Array.from(bytes));
  }

  client(): LinkedClient {
    const client = new LinkedClient(this);
    this.clients.push(client);
    return client;
  }

  /** The agent's session ends by time, or because its client leaves. */
  forget(sid: string, reason = "the session is over"): void {
    this.held.delete(sid);
    this.part?.lost(sid, reason);
  }

  private toClient(sid: string, text: string): boolean {
    if (!this.held.has(sid)) return false;
    for (const client of this.clients) client.queueDown(sid, text);
    return true;
  }

  receive(
    sid: string,
    method: string,
    params: unknown,
    answer: (value: unknown, error: unknown) => void,
  ): void {
    if (this.user === null) return;
    this.held.set(sid, this.timer.now());
    if (method.startsWith("stream.")) {
      this.part?.receive(method, params, sid);
      return;
    }
    const run = async (): Promise<unknown> => {
      if (method === "system.ping") return {};
      const handler = this.handlers.get(method);
      if (handler === undefined) throw Object.assign(new Error("unknown"), { code: -32_601 });
      return handler(params, { sid });
    };
    run().then(
      (value) => answer(value, null),
      (error) => answer(null, error),
    );
  }

  /** Runs everything that is due, as far as `until`. */
  async run(done: () => boolean): Promise<void> {
    for (let step = 0; !done(); step++) {
      if (step > LIMIT_STEPS) throw new Error("it does not come to an end");
      let moved = false;
      for (const client of this.clients) moved = client.deliverOne() || moved;
      await null;
      await null;
      if (!moved) {
        this.timer.advance(1);
        if (step % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}

/** One client's link: a queue in each direction, and one session at a time. */
class LinkedClient {
  sid = "";
  private readonly world: World;
  private up: Send[] = [];
  private down: { readonly sid: string; readonly run: Send }[] = [];
  private table: StreamTable | null = null;
  private notice: (event: string, data: unknown) => void = () => undefined;
  private waiting = new Set<(error: CallError) => void>();
  private numbers = 0;
  private sessions = 0;
  /** A dead process: it takes nothing and sends nothing. */
  isDead = false;

  constructor(world: World) {
    this.world = world;
    this.renew();
  }

  /** As `RemotePort` uses it. */
  get agent(): Agent {
    return {
      id: "modem",
      streamNumber: () => ++this.numbers,
      call: (method: string, params: unknown) => this.call(method, params),
      callWithStreams: (method: string, params: unknown, sent: (streams: SessionStreams) => void) =>
        this.call(method, params, sent),
    } as unknown as Agent;
  }

  /** The link is lost: what is under way is gone, and the next session is another. */
  cut(): void {
    this.up = [];
    this.down = [];
    const { table } = this;
    this.renew();
    table?.fail("the link was lost");
    const lost = new CallError("OUTCOME_UNKNOWN", "the link was lost", { retryable: false });
    for (const reject of [...this.waiting]) reject(lost);
  }

  queueDown(sid: string, text: string): void {
    if (sid !== this.sid || this.isDead) return;
    const { method, params } = JSON.parse(text);
    this.down.push({
      sid,
      run: () => {
        if (method.startsWith("stream.")) this.table?.receive(method, params);
        else this.notice(method, params);
      },
    });
  }

  deliverOne(): boolean {
    if (this.isDead) {
      this.up = [];
      this.down = [];
      return false;
    }
    const up = this.up.shift();
    up?.();
    const down = this.down.shift();
    if (down !== undefined && down.sid === this.sid) down.run();
    return up !== undefined || down !== undefined;
  }

  private renew(): void {
    const sid = `${Math.random()} ${++this.sessions}`;
    this.sid = sid;
    this.table = new StreamTable({
      maxChunk: 12_288,
      notify: (method, params) => {
        if (this.sid !== sid || this.isDead) return false;
        this.up.push(() => this.world.receive(sid, method, params, () => undefined));
        return true;
      },
    });
  }

  private call(
    method: string,
    params: unknown,
    sent?: (streams: SessionStreams) => void,
  ): Promise<unknown> {
    const { sid, table } = this;
    return new Promise((resolve, reject) => {
      const fail = (error: CallError): void => {
        this.waiting.delete(fail);
        reject(error);
      };
      this.waiting.add(fail);
      sent?.({
        incoming: (id, events) => (table as StreamTable).incoming(id, events),
        outgoing: (id, events) => (table as StreamTable).outgoing(id, events),
        onNotice: (fn) => {
          this.notice = fn;
        },
        paceMs: () => 0,
      });
      this.up.push(() =>
        this.world.receive(sid, method, params, (value, thrown) => {
          this.down.push({
            sid,
            run: () => {
              this.waiting.delete(fail);
              if (thrown === null) resolve(value);
              else {
                const { code = -32_000, message } = thrown as { code?: number; message: string };
                const details = { remote: { code, message, data: undefined }, retryable: false };
                reject(new CallError("REMOTE", message, details));
              }
            },
          });
        }),
      );
    });
  }
}

interface Attached {
  readonly remote: RemotePort;
  readonly link: LinkedClient;
  readonly got: number[];
  readonly losses: Loss[];
  readonly away: string[];
  /** Takes nothing from now on. */
  stall(): void;
}

let claims = 0;

const attachTo = (
  world: World,
  options: { claim?: string; watch?: boolean; takeover?: boolean; user?: string } = {},
): Attached => {
  const link = world.client();
  const got: number[] = [];
  const losses: Loss[] = [];
  const away: string[] = [];
  let isStalled = false;
  const remote = new RemotePort(
    link.agent,
    {
      port: undefined,
      claim: options.claim ?? `claim${String(++claims).padStart(17, "0")}`,
      user: options.user ?? "ada",
      watch: options.watch ?? false,
      takeover: options.takeover ?? false,
      timer: world.timer,
    },
    {
      data: (bytes) => {
        got.push(...bytes);
        if (!isStalled) remote.taken(bytes.length);
      },
      writable: () => undefined,
      up: () => undefined,
      down: (reason) => away.push(reason),
      lost: (loss) => losses.push(loss),
      changed: () => undefined,
    },
  );
  return {
    remote,
    link,
    got,
    losses,
    away,
    stall: () => {
      isStalled = true;
    },
  };
};

const started = async (
  world: World,
  options: Parameters<typeof attachTo>[1] = {},
): Promise<Attached> => {
  const attached = attachTo(world, options);
  const start = attached.remote.start().then(
    () => "up",
    (error: Error) => error,
  );
  let outcome: unknown;
  void start.then((value) => {
    outcome = value;
  });
  await world.run(() => outcome !== undefined);
  if (outcome !== "up") throw outcome;
  return attached;
};

const bytes = (count: number, seed: number): Uint8Array => {
  let state = seed;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 24;
  });
};

describe("attach to a raw bridge", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    "loses and doubles nothing over lost links, in order %d",
    async (seed) => {
      const world = new World();
      world.plug();
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
        if (said < up.length && !world.isPaused) {
          const end = said + 1 + random(3_000);
          world.says(...up.subarray(said, end));
          said = Math.min(end, up.length);
        }
        if (++step > 3 && cuts < 20 && random(6) === 0) {
          cuts++;
          link.cut();
        }
        return world.device.length >= down.length && got.length >= up.length;
      });
      expect(cuts).toBeGreaterThan(0);
      expect(Buffer.from(world.device).equals(down)).toBe(true);
      expect(Buffer.from(got).equals(up)).toBe(true);
      expect(losses).toEqual([]);
    },
  );

  it("says with position and number what a replugged port has not taken, and sends it to no other", async () => {
    const world = new World();
    world.plug();
    const { remote, got, losses } = await started(world);
    remote.write(Uint8Array.of(1, 2, 3));
    await world.run(() => world.device.length === 3);
    await world.pull();
    remote.write(Uint8Array.of(4, 5));
    world.plug();
    world.says(7);
    await world.run(() => got.length === 1);
    // The credit that acknowledges the first three was not due yet.
    expect(losses).toEqual([
      { direction: "to the device", outcome: "unknown", from: 0, bytes: 3 },
      { direction: "to the device", outcome: "not sent", from: 3, bytes: 2 },
    ]);
    remote.write(Uint8Array.of(6));
    await world.run(() => world.device.length === 4);
    expect([world.device, got]).toEqual([[1, 2, 3, 6], [7]]);
  });

  it("says which of the device's bytes are gone after more came than is kept", async () => {
    const world = new World();
    world.plug();
    const { got, losses, link } = await started(world);
    const sid = link.sid;
    world.says(1, 2, 3);
    await world.run(() => got.length === 3);
    link.cut();
    link.isDead = true;
    world.forget(sid);
    // The port is paused for a minute; then its oldest bytes go.
    for (let n = 0; n < 30; n++) world.line.data(new Uint8Array(10_000).fill(n));
    expect(world.isPaused).toBe(true);
    world.timer.advance(58_000);
    expect(world.isPaused).toBe(true);
    world.timer.advance(4_000);
    expect(world.isPaused).toBe(false);
    link.isDead = false;
    link.cut();
    const bytes = 300_000 - 262_144;
    await world.run(() => got.length === 3 + 262_144);
    expect(losses).toEqual([{ direction: "from the device", outcome: "lost", from: 3, bytes }]);
  });

  it("gives a port to who came first, names that user, and gives it on when nothing comes from it", async () => {
    const world = new World();
    world.plug();
    const first = await started(world, { user: "ada" });
    await expect(started(world, { user: "bob" })).rejects.toThrow("in use by ada");
    first.link.isDead = true;
    const askedAt = world.timer.now();
    const second = await started(world, { user: "bob" });
    expect(world.timer.now() - askedAt).toBeGreaterThanOrEqual(10_000);
    expect(world.line.usage).toMatchObject({ user: { user: "bob" } });
    second.remote.write(Uint8Array.of(9));
    await world.run(() => world.device.length === 1);
  });

  it("lets one take over only where the port's access says so", async () => {
    const strict = new World();
    strict.plug();
    await started(strict, { user: "ada" });
    await expect(started(strict, { takeover: true })).rejects.toThrow("not takeover");
    const open = new World("takeover");
    open.plug();
    const first = await started(open, { user: "ada" });
    await expect(started(open)).rejects.toThrow("in use by ada");
    await started(open, { takeover: true, user: "bob" });
    await open.run(() => first.away.length > 0);
    expect(first.away[0]).toContain("bob took over");
    const closed = new World("read-only");
    closed.plug();
    await expect(started(closed)).rejects.toThrow("read-only");
    await started(closed, { watch: true });
  });

  it("shows a watcher what the writer reads, and does not wait for one that stalls", async () => {
    const world = new World();
    world.plug();
    const writer = await started(world);
    const watcher = await started(world, { watch: true });
    watcher.stall();
    const total = 600_000;
    let said = 0;
    await world.run(() => {
      if (said < total && !world.isPaused) {
        world.says(...bytes(8_000, said));
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
    world.plug();
    const claim = "c".repeat(22);
    const first = await started(world, { claim });
    world.says(1, 2);
    await world.run(() => first.got.length === 2);
    first.link.isDead = true;
    world.says(3);
    const askedAt = world.timer.now();
    const second = await started(world, { claim });
    world.says(4);
    await world.run(() => second.got.includes(4));
    expect(world.timer.now() - askedAt).toBeLessThan(1_000);
    expect(second.got.filter((byte) => byte <= 2)).toEqual([]);
  });

  it("runs a sequence of control lines before what is written after it", async () => {
    const world = new World();
    world.plug();
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
    await world.run(() => world.device.length === 1);
    await world.run(() => ran && world.device.length === 2);
    expect(world.control).toEqual(['{"dtr":false,"rts":true}', '{"rts":false}']);
    await expect(remote.signals(Array.from({ length: 33 }, () => ({ dtr: true })))).rejects.toThrow;
  });
});
