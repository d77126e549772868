/** Which callers wait for a password hash, and which do not. */
import { afterEach, expect, test, vi } from "vitest";
import { HashQueue, KNOWN, Overloaded } from "./hash-queue.ts";

afterEach(() => {
  vi.useRealTimers();
});

const world = (workers: number, maxWaiting: number) => {
  const clock = { nowMs: 0 };
  const queue = new HashQueue(workers, maxWaiting, () => clock.nowMs);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, rank = 1, userId?: string): Promise<void> =>
    queue.run(
      rank,
      () => {
        begun.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      },
      userId,
    );
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, queue, begun, run, end };
};

test("known callers go first, and the others in order of arrival", async () => {
  const { begun, run, end } = world(1, 10);
  const all = [run("a"), run("b"), run("c"), run("ada", KNOWN), run("eve", KNOWN)];
  await end("a");
  await end("ada");
  await end("eve");
  await end("b");
  await end("c");
  await Promise.all(all);
  expect(begun).toEqual(["a", "ada", "eve", "b", "c"]);
});

test("a full queue refuses unknown callers, and a known one displaces the last of them", async () => {
  const { queue, begun, run, end } = world(2, 2);
  const working = [run("a"), run("b")];
  const first = run("c");
  const second = run("d");
  await expect(run("e")).rejects.toThrow(Overloaded);
  const known = run("ada", KNOWN);
  await expect(second).rejects.toThrow(Overloaded);
  const other = run("bob", KNOWN);
  await expect(first).rejects.toThrow(Overloaded);
  await expect(run("cat", KNOWN)).rejects.toThrow(Overloaded);
  expect(queue.waiting).toBe(2);
  for (const name of ["a", "b", "ada", "bob"]) await end(name);
  await Promise.all([...working, known, other]);
  expect(begun).toEqual(["a", "b", "ada", "bob"]);
});

test("a refusal takes a second, but for at most a thousand at once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  const queue = new HashQueue(1, 1);
  const told: number[] = [];
  const refusals = Array.from({ length: 1025 }, async (_, i) => {
    await queue.refusal();
    told.push(i);
  });
  await vi.advanceTimersByTimeAsync(999);
  expect(told).toEqual([1024]);
  await vi.advanceTimersByTimeAsync(1);
  await Promise.all(refusals);
  expect(told).toHaveLength(1025);
});

test("work that fails frees its place", async () => {
  const queue = new HashQueue(1, 1);
  await expect(queue.run(1, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await queue.run(1, async () => 7)).toBe(7);
});

test("unknown callers of a lower rank go first, and displace one of the highest", async () => {
  const { begun, run, end } = world(1, 3);
  const working = run("a");
  const guessers = [run("g1", 7), run("g2", 7), run("g3", 7)];
  const newcomer = run("new", 1);
  await expect(guessers[2]).rejects.toThrow(Overloaded);
  await expect(run("g4", 8)).rejects.toThrow(Overloaded);
  for (const name of ["a", "new", "g1", "g2"]) await end(name);
  await Promise.all([working, newcomer, guessers[0], guessers[1]]);
  expect(begun).toEqual(["a", "new", "g1", "g2"]);
});

test("when hashes become slow, only as many wait as are hashed within 1.5 s, and four at least", async () => {
  const { clock, queue, run, end } = world(1, 32);
  const refused: number[] = [];
  Array.from({ length: 33 }, (_, i) => run(String(i)).catch(() => refused.push(i)));
  expect(queue.waiting).toBe(32);
  clock.nowMs += 800;
  await end("0"); // a quarter of its time counts
  await expect(run("late")).rejects.toThrow(Overloaded);
  expect(queue.waiting).toBe(7);
  clock.nowMs += 8000;
  await end("1");
  await expect(run("later")).rejects.toThrow(Overloaded);
  expect(queue.waiting).toBe(4);
  expect(refused).toHaveLength(26);
});

test("a known user who floods the queue waits for every other known user, and is refused", async () => {
  const { queue, begun, run, end } = world(1, 4);
  const refused: string[] = [];
  const flood = (from: number, to: number) => {
    for (let n = from; n <= to; n++)
      run(`eve${n}`, KNOWN, "eve").catch(() => refused.push(`eve${n}`));
  };
  flood(1, 6);
  const ada = run("ada", KNOWN, "ada");
  flood(7, 9);
  const bob = run("bob", KNOWN, "bob");
  for (const name of ["eve1", "ada", "bob"]) await end(name);
  await Promise.all([ada, bob]);
  expect(begun).toEqual(["eve1", "ada", "bob", "eve2"]);
  expect(refused).toEqual(["eve6", "eve5", "eve7", "eve8", "eve9", "eve4"]);
  for (const name of ["eve2", "eve3"]) await end(name);
  expect(queue.waiting).toBe(0);
  // What is done does not count any more.
  const [next, others] = [run("eve", KNOWN, "eve"), run("adas", KNOWN, "ada")];
  for (const name of ["eve", "adas"]) await end(name);
  await Promise.all([next, others]);
  expect(begun.slice(-2)).toEqual(["eve", "adas"]);
});
