/** Who waits for a password's hash, and who does not. */
import { expect, test } from "vitest";
import { HashQueue, Overloaded } from "./hash-queue.ts";

const world = (workers: number, maxWaiting: number) => {
  const queue = new HashQueue(workers, maxWaiting);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, known = false): Promise<void> =>
    queue.run(known, () => {
      begun.push(name);
      return new Promise((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { queue, begun, run, end };
};

test("known callers go first, and the others in order of arrival", async () => {
  const { begun, run, end } = world(1, 10);
  const all = [run("a"), run("b"), run("c"), run("ada", true), run("eve", true)];
  await end("a");
  await end("ada");
  await end("eve");
  await end("b");
  await end("c");
  await Promise.all(all);
  expect(begun).toEqual(["a", "ada", "eve", "b", "c"]);
});

test("a full queue refuses unknown callers, and a known one displaces the last", async () => {
  const { queue, begun, run, end } = world(2, 2);
  const working = [run("a"), run("b")];
  const first = run("c");
  const second = run("d");
  await expect(run("e")).rejects.toThrow(Overloaded);
  const known = run("ada", true);
  await expect(second).rejects.toThrow(Overloaded);
  const other = run("bob", true);
  await expect(first).rejects.toThrow(Overloaded);
  await expect(run("cat", true)).rejects.toThrow(Overloaded);
  expect(queue.waiting).toBe(2);
  for (const name of ["a", "b", "ada", "bob"]) await end(name);
  await Promise.all([...working, known, other]);
  expect(begun).toEqual(["a", "b", "ada", "bob"]);
});

test("work that fails gives its place back", async () => {
  const queue = new HashQueue(1, 1);
  await expect(queue.run(false, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await queue.run(false, async () => 7)).toBe(7);
});
