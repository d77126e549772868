/** Events that could not be sent are said (section 2, "Lost events"). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Client, World } from "../testing/world.ts";
import { Streams } from "./streams.ts";

const FULL = 2 ** 21;

/** Each has keys of its own. */
let worlds = 0;

/** A world whose agent numbers its ticks, and the queue of its link. */
const ticking = () => {
  const queue = { bytes: 0, hasMemory: true };
  worlds++;
  const core = { canSeal: () => queue.hasMemory };
  const world = new World({ seed: worlds, queuedBytes: () => queue.bytes, core });
  let n = 0;
  const tick = (times = 1): void => {
    for (let i = 0; i < times; i++) world.core.agent.emit("tick", { n: ++n });
  };
  return { world, queue, tick };
};

const cut = (world: World): void => {
  world.link().end.close(1006, "cable");
  world.settle();
};

const reconnect = (world: World): void => {
  world.untilConnected();
  world.accept();
};

/** What a client was told, in short: numbers of ticks, and "lost n". */
const told = (client: Client): unknown[] => {
  client.pump();
  return client.inbox.map(({ method, params, id }) =>
    method === "tick" ? params.n : method === "system.lost" ? `lost ${params.events}` : `#${id}`,
  );
};

describe("events that could not be sent", () => {
  it("for lack of memory are not sealed, and said once there is some", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    tick();
    queue.hasMemory = false;
    tick(2);
    expect(told(client)).toEqual([1]);
    queue.hasMemory = true;
    tick();
    expect(told(client)).toEqual([1, "lost 2", 4]);
  });

  it("without a link are said as soon as there is one, to each session as many as it missed", () => {
    const { world, tick } = ticking();
    world.online();
    const first = new Client(world).open();
    tick();
    expect(told(first)).toEqual([1]);
    cut(world);
    tick(2);
    reconnect(world);
    const second = new Client(world, "envelope").open();
    expect(told(first)).toEqual([1, "lost 2"]);
    cut(world);
    tick(3);
    reconnect(world);
    expect(told(first)).toEqual([1, "lost 2", "lost 3"]);
    expect(told(second)).toEqual(["lost 3"]);
    tick();
    expect(told(first)).toEqual([1, "lost 2", "lost 3", 7]);
    expect([first.gaps, second.gaps]).toEqual([0, 0]);
  });

  it("because the queue is full are said before what is sent next, an event or an answer", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    queue.bytes = FULL;
    tick(2);
    queue.bytes = 0;
    tick();
    expect(told(client)).toEqual(["lost 2", 3]);
    queue.bytes = FULL;
    tick();
    queue.bytes = 0;
    client.call("system.ping");
    expect(told(client)).toEqual(["lost 2", 3, "lost 1", "#10"]);
  });

  it("are said with the relay's next message, if nothing else is to be sent", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    queue.bytes = FULL;
    tick();
    world.say({ type: "ping" });
    expect(told(client)).toEqual([]);
    queue.bytes = 0;
    world.say({ type: "ping" });
    world.say({ type: "ping" });
    expect(told(client)).toEqual(["lost 1"]);
  });

  it("are counted on while the queue is full again", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    const send = world.core.link.send.bind(world.core.link);
    world.core.link.send = (text) => {
      send(text);
      queue.bytes = FULL; // each packet fills it
    };
    tick(3);
    queue.bytes = 0;
    tick(2); // the notice takes the place of the first
    queue.bytes = 0;
    tick();
    expect(told(client)).toEqual([1, "lost 2", "lost 2"]);
  });

  it("are counted before the session's first answer, and forgotten with the session", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const gone = new Client(world).open();
    queue.bytes = FULL;
    tick();
    world.core.sessions.close(gone.session.sid() as string);
    queue.bytes = 0;
    world.say({ type: "ping" });
    expect(told(gone)).toEqual([]);

    const late = new Client(world);
    const opening = late.session.open(world.timer.now());
    expect(opening).toHaveLength(1);
    const ping = () => late.session.outstanding() as string;
    world.say(ping());
    late.session.receive(world.link().texts.at(-1) as string, world.timer.now());
    queue.bytes = FULL;
    world.say(ping()); // stored, and its answer is lost
    tick();
    queue.bytes = 0;
    world.say({ type: "ping" });
    late.pump();
    expect(late.inbox).toEqual([{ jsonrpc: "2.0", method: "system.lost", params: { events: 1 } }]);
  });

  it("end no stream", () => {
    const { world, tick } = ticking();
    world.online();
    const streams = new Streams(world.core.agent);
    const ended: unknown[] = [];
    world.core.agent.handle("read", (params, { sid }) => {
      streams.outgoing(sid, params.stream, {
        writable: () => {},
        ended: (error) => ended.push(error),
      });
      return {};
    });
    const client = new Client(world).open();
    client.call("read", { stream: 1 });
    cut(world);
    tick(2);
    reconnect(world);
    expect(told(client)).toEqual(["#10", "lost 2"]);
    expect(ended).toEqual([]);
  });

  it("on a half-open link show as a gap, those after it are said", () => {
    const { world, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    tick(2); // nobody reads that link any more
    const links = world.links.length;
    while (world.core.link.state === "online") world.timer.advance(1000);
    tick(3);
    while (world.links.length === links) world.timer.advance(1000);
    world.settle();
    world.accept();
    tick();
    expect(told(client)).toEqual(["lost 3", 6]);
    expect(client.gaps).toBe(2);
  });

  it("are never lost unsaid, whatever happens in whatever order", () => {
    const step = fc.constantFrom("tick", "tick", "tick", "cut", "full", "empty", "call", "wait");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { world, queue, tick } = ticking();
        world.online();
        const client = new Client(world).open();
        const online = () => world.core.link.state === "online";
        for (const one of steps) {
          if (one === "tick") tick();
          client.pump(); // it gets all that was sent on this link
          if (one === "cut" && online()) cut(world);
          if (one === "full") queue.bytes = FULL;
          if (one === "empty") queue.bytes = 0;
          if (one === "wait" && !online()) reconnect(world);
          if (one === "call" && online()) client.call("system.ping");
        }
        client.pump();
        queue.bytes = 0;
        if (!online()) reconnect(world);
        client.call("system.ping");
        let next = 1;
        for (const one of told(client)) {
          if (typeof one === "number") expect(one).toBe(next);
          if (typeof one === "number") next = one + 1;
          else if (String(one).startsWith("lost ")) next += Number(String(one).slice(5));
        }
        const emitted = steps.filter((one) => one === "tick").length;
        expect([next - 1, client.gaps]).toEqual([emitted, 0]);
      }),
      { numRuns: 150 },
    );
  });
});

describe("an answer without memory to seal it", () => {
  it("is sent once there is some, after what was emitted before", () => {
    const { world, queue, tick } = ticking();
    world.online();
    const client = new Client(world).open();
    queue.hasMemory = false;
    client.call("system.ping");
    tick();
    world.timer.advance(600);
    expect(told(client)).toEqual([]);
    queue.hasMemory = true;
    world.timer.advance(300);
    expect(told(client)).toEqual(["lost 1", "#10"]);
    world.timer.advance(10_000);
    expect(told(client)).toEqual(["lost 1", "#10"]);
  });

  it("is given up after two seconds", () => {
    const { world, queue } = ticking();
    world.online();
    const client = new Client(world).open();
    queue.hasMemory = false;
    client.call("system.ping");
    world.timer.advance(2100);
    queue.hasMemory = true;
    world.timer.advance(10_000);
    expect(told(client)).toEqual([]);
  });
});
