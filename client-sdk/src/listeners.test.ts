import { expect, it } from "vitest";
import { Listeners } from "./listeners.ts";

it("a listener that is added by another hears of what comes next, so each may add one", () => {
  const listeners = new Listeners<[number]>((cause) => {
    throw cause;
  });
  const heard: number[] = [];
  const once = (): void => {
    const off = listeners.add((n) => {
      off();
      heard.push(n);
      if (heard.length < 100) once();
    });
  };
  once();
  for (const n of [1, 2, 3]) listeners.emit(n);
  expect(heard).toEqual([1, 2, 3]);
});

it("a listener that another one removes hears nothing more", () => {
  const listeners = new Listeners<[number]>(() => undefined);
  const heard: string[] = [];
  listeners.add(() => {
    heard.push("first");
    off();
  });
  const off = listeners.add(() => heard.push("second"));
  listeners.emit(1);
  expect(heard).toEqual(["first"]);
});

it("a listener that first gets the present state gets no older one after a newer", async () => {
  let state = "online";
  const listeners = new Listeners<[string]>(() => undefined);
  const heard: string[] = [];
  listeners.add(
    (one) => heard.push(one),
    () => [[state]],
  );
  // Before the microtask, as with several messages in one segment of TCP.
  state = "offline";
  listeners.emit(state);
  await Promise.resolve();
  listeners.emit("online");
  expect(heard).toEqual(["offline", "online"]);
});

it("a listener that leaves before it got the present state gets none", async () => {
  const listeners = new Listeners<[string]>(() => undefined);
  const heard: string[] = [];
  const off = listeners.add(
    (one) => heard.push(one),
    () => [["online"]],
  );
  off();
  await Promise.resolve();
  listeners.emit("offline");
  expect(heard).toEqual([]);
});
