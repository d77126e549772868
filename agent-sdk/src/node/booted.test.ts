import { expect, it } from "vitest";
import type { AgentCore } from "../core/agent-core.ts";
import { MemoryStorage } from "../memory/storage.ts";
import { type BootConfirmed, watchBoot } from "./booted.ts";

it("confirms a boot at the next login if the first one could not be recorded", () => {
  const storage = new MemoryStorage();
  let isFull = true;
  let login = (): void => undefined;
  const link = {
    onState: (fn: (status: { state: string }) => void) => {
      login = () => fn({ state: "online" });
    },
  };
  const port = {
    read: (name: string) => storage.read(name),
    write: (name: string, text: string) => {
      if (isFull) throw new Error("ENOSPC");
      storage.write(name, text);
    },
  };
  const told: BootConfirmed[] = [];
  watchBoot({ link } as unknown as AgentCore, port, "1.5.0")((event) => told.push(event));
  expect(login).toThrow("ENOSPC");
  expect(told).toEqual([]);
  isFull = false;
  login();
  login();
  expect(told).toEqual([{ version: "1.5.0", previous: null, fellBack: false }]);
});
