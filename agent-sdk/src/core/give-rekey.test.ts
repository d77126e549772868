import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { MemoryStorage, seededRandom } from "../memory/index.ts";
import type { StoragePort } from "../ports.ts";
import {
  askRekey,
  opens,
  type RekeyedDevice,
  sessionsOf,
  tenMinutesLater,
} from "../testing/rekeyed-device.ts";
import { AGENT_ID, World } from "../testing/world.ts";
import { provisionBootCount, raiseBootCount } from "./bootcount.ts";
import { startRekeyed } from "./give-rekey.ts";
import { writeNext } from "./record.ts";
import { startSecrets } from "./rekey.ts";

const suite = nodeSuite();
const [A, B, C] = [1, 2, 3].map((byte) => makeToken("e2e", new Uint8Array(32).fill(byte))) as [
  string,
  string,
  string,
];

const logs: string[] = [];
const start = (storage: StoragePort, configured: string) =>
  startRekeyed(
    {
      storage,
      suite,
      log: (level, message) => logs.push(`${level}: ${message}`),
      sha256: () => "",
    },
    AGENT_ID,
    configured,
  );

/** Provisioned for A, which B has replaced since. */
const rekeyed = (): MemoryStorage => {
  logs.length = 0;
  const storage = new MemoryStorage();
  provisionBootCount(storage, suite, A);
  const { configured, ...before } = startSecrets(storage, suite, A, 0) as { configured: string };
  writeNext(
    storage,
    "secret",
    { n: 0, ...before },
    { token: B, earlier: [configured], trial: null },
  );
  return storage;
};

it("starts under the secret that replaced the configuration's, and says so", () => {
  const storage = rekeyed();
  expect(start(storage, A).secrets).toMatchObject({ token: B, isReplaced: true });
  expect(logs).toEqual([expect.stringContaining("replaced over the air")]);
  // The slots are the new one's from then on.
  expect(raiseBootCount(storage, suite, A).ok).toBe(false);
  expect(start(storage, B).secrets).toMatchObject({ token: B, isReplaced: false });
});

it("follows a configuration for which the storage was provisioned anew, and no other", () => {
  const storage = rekeyed();
  start(storage, A);
  expect(() => start(storage, C)).toThrow("belongs to another agent_token");
  provisionBootCount(storage, suite, C);
  const { secrets, boot } = start(storage, C);
  expect(secrets).toMatchObject({ token: C, trial: null, isReplaced: false });
  expect(start(storage, C).boot.count).toBe(boot.count + 1);
  expect(() => start(storage, B)).toThrow("belongs to another agent_token");
  for (const name of ["secret.0", "secret.1"]) expect(storage.read(name)).not.toContain(B);
});

it("does not start without a boot count", () => {
  expect(() => start(new MemoryStorage(), A)).toThrow("there is no boot count");
});

/** A start, and the relay's end of it. */
const run = (storage: StoragePort, configured: string): RekeyedDevice => {
  const { secrets, boot, serve } = start(storage, configured);
  const core = { agentToken: secrets.token };
  const world = new World({ seed: boot.count, bootCount: boot.count, core });
  serve(world.core, sessionsOf);
  world.online();
  return { world, replaced: secrets.isReplaced };
};

it("answers to no secret from before it was provisioned, in any order of what happens", () => {
  for (let seed = 1; seed <= 15; seed++) {
    const random = seededRandom(seed);
    const below = (n: number): number => (random(1)[0] as number) % n;
    const make = (): string => makeToken("e2e", random(32));
    const storage = new MemoryStorage();
    let configured = make();
    let token = configured;
    let trial: string | null = null;
    const before: string[] = [];
    provisionBootCount(storage, suite, configured);
    let device = run(storage, configured);
    for (let step = 0; step < 12; step++) {
      const choice = below(5);
      if (choice === 0) {
        const next = make();
        if (askRekey(device, { secret: next, id: `${step}` }, token)?.result) trial = next;
      } else if (choice === 1 && trial !== null && opens(device, trial)) {
        before.push(token);
        token = trial;
        trial = null;
      } else if (choice === 2) device = run(storage, configured);
      else if (choice === 3) tenMinutesLater(device);
      else {
        before.push(token, ...(trial === null ? [] : [trial]));
        configured = make();
        token = configured;
        trial = null;
        provisionBootCount(storage, suite, configured);
        device = run(storage, configured);
      }
      const name = `seed ${seed}, step ${step}`;
      for (const old of before.slice(-2)) expect(opens(device, old), name).toBe(false);
      expect(opens(device, token), name).toBe(true);
    }
  }
});
