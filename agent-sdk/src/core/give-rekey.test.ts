import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { MemoryStorage } from "../memory/index.ts";
import type { StoragePort } from "../ports.ts";
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
    "lamp-1",
    configured,
  );

/** Provisioned for A, which B has replaced since. */
const rekeyed = (): MemoryStorage => {
  const storage = new MemoryStorage();
  provisionBootCount(storage, suite, A);
  const { configured, ...before } = startSecrets(storage, suite, A) as { configured: string };
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
