import { type Agent, giveStorage } from "@blindrelay/agent-sdk";
import { MemoryStorage, PowerCut } from "@blindrelay/agent-sdk/memory";
import { expect, test } from "vitest";
import { StorageOracle } from "./storage.ts";

/** A device whose storage is watched, and what the oracle says of it. */
const device = () => {
  const said: string[] = [];
  const oracle = new StorageOracle(
    (what) => said.push(what),
    (error) => error instanceof PowerCut,
  );
  const medium = new MemoryStorage();
  let isCut = false;
  const start = (): Agent["storage"] => {
    const agent = {} as Agent;
    giveStorage(agent, {
      read: (name) => medium.read(name),
      write: (name, text) => {
        if (isCut) throw new PowerCut();
        medium.write(name, text);
      },
    });
    oracle.watch(agent.storage);
    return agent.storage;
  };
  return { said, medium, start, cut: (on: boolean) => (isCut = on) };
};

test("has nothing to say of texts that come, change, go and outlive a restart", () => {
  const { said, start } = device();
  const storage = start();
  storage.set("a", "1");
  storage.set("b", "2");
  storage.set("a", "3");
  storage.remove("b");
  expect(() => storage.set("A", "no key")).toThrow();
  const next = start();
  expect([next.get("a"), next.get("b"), next.get("c")]).toEqual(["3", null, null]);
  expect(said).toEqual([]);
});

test("takes the old text or the new one after a power cut, and from then on that one", () => {
  const { said, start, cut, medium } = device();
  const storage = start();
  storage.set("a", "old");
  cut(true);
  expect(() => storage.set("a", "new")).toThrow(PowerCut);
  cut(false);
  expect(start().get("a")).toBe("old");
  for (let slot = 0; slot < 17; slot++) medium.remove(`text.${slot}`);
  start();
  expect(said).toEqual(['has null as "a", and stored "old"']);
});
