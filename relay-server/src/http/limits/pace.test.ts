/** How many requests begin in one turn of the event loop. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import type { HttpProblem } from "../base/problem.ts";
import { Pace, paceRequests } from "./pace.ts";

/** Numbers the turns of the event loop until the test ends. */
const countTurns = (): (() => number) => {
  let turn = 0;
  let goesOn = true;
  const count = (): void => {
    turn += 1;
    if (goesOn) setImmediate(count);
  };
  setImmediate(count);
  onTestFinished(() => {
    goesOn = false;
  });
  return () => turn;
};

const keepBusy = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end; );
};

/** For each of `count` requests that keep the thread busy for `ms`: the turn in which it began. */
const turnsOf = async (count: number, ms: number): Promise<number[]> => {
  const pace = new Pace();
  const turn = countTurns();
  return await Promise.all(
    Array.from({ length: count }, async () => {
      await pace.begin("192.0.2.1");
      const beganIn = turn();
      keepBusy(ms);
      return beganIn;
    }),
  );
};

test("a slow one begins alone", async () => {
  const began = await turnsOf(8, 3);
  expect(new Set(began).size).toBe(8);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
});

test("quick ones begin together, but at most 16", async () => {
  const began = await turnsOf(64, 0);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
  const most = Math.max(...began.map((turn) => began.filter((other) => other === turn).length));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(16);
});

test("waiting messages are written before each request, not after all of them", async () => {
  const order: string[] = [];
  const pace = new Pace(() => order.push("messages"));
  const begin = async (name: string): Promise<void> => {
    await pace.begin("192.0.2.1");
    order.push(name);
  };
  await Promise.all([begin("a"), begin("b")]);
  expect(order).toEqual(["messages", "a", "messages", "b"]);
});

test("the waiting requests are limited; beyond that one of the heaviest address is refused", async () => {
  const pace = new Pace(() => undefined, 3);
  const outcome = (address: string): Promise<string> =>
    pace.begin(address).then(
      () => "began",
      (error: HttpProblem) => `${error.code} ${error.headers["retry-after"]}`,
    );
  const greedy = Array.from({ length: 4 }, () => outcome("192.0.2.1"));
  const other = outcome("192.0.2.2");
  expect(await Promise.all([...greedy, other])).toEqual([
    "began",
    "began",
    "UNAVAILABLE 1",
    "UNAVAILABLE 1",
    "began",
  ]);
  expect(await outcome("192.0.2.1")).toBe("began");
});

test("continuing and arriving requests take turns", async () => {
  const pace = new Pace();
  const order: string[] = [];
  const goesOn = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await pace.goOn("ann");
      order.push("goes on");
    }
  };
  const begins = async (): Promise<void> => {
    await pace.begin("192.0.2.1");
    order.push("begins");
  };
  await Promise.all([goesOn(), goesOn(), begins(), begins()]);
  expect(order.slice(0, 4).toSorted()).toEqual(["begins", "begins", "goes on", "goes on"]);
});

/** A server whose requests are paced, and connections that each send it one. */
const paced = async (pace: Pace, count: number, listener: RequestListener) => {
  const server = createServer(listener);
  const pacedOf = paceRequests(server, pace, () => "key");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return { server, sockets, pacedOf };
};

test("slow requests of several connections reach the server's listener in a turn each", async () => {
  const turn = countTurns();
  const beganIn: number[] = [];
  const { sockets } = await paced(new Pace(), 8, (_request, response) => {
    beganIn.push(turn());
    keepBusy(3);
    response.end("ok");
  });
  await Promise.all(sockets.map((socket) => once(socket, "data")));
  expect(new Set(beganIn).size).toBe(8);
});

test("a request that may not wait reaches the listener with its refusal", async () => {
  const refusals: unknown[] = [];
  const { sockets, pacedOf } = await paced(new Pace(() => undefined, 0), 1, (request, response) => {
    refusals.push(pacedOf(request)?.refusal);
    response.end();
  });
  await Promise.all(sockets.map((socket) => once(socket, "data")));
  expect(refusals).toMatchObject([{ code: "UNAVAILABLE" }]);
});

test("a request whose connection ended while it waited is dropped", async () => {
  const pace = new Pace();
  const turn = Promise.withResolvers<void>();
  const begin = vi.spyOn(pace, "begin").mockReturnValue(turn.promise);
  const listener = vi.fn();
  const { server, sockets } = await paced(pace, 1, listener);
  await expect.poll(() => begin).toHaveBeenCalled();
  const connections = promisify(server.getConnections.bind(server));
  sockets[0]?.destroy();
  await expect.poll(() => connections()).toBe(0);
  turn.resolve();
  await nextTurn();
  expect(listener).not.toHaveBeenCalled();
});
