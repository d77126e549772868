/**
 * The conformance kit: everything that a runtime must do, tested on a device that runs in it. A new
 * runtime implements RuntimeUnderTest (device.ts) and calls this (docs/bring-your-runtime.md).
 *
 * - every vector of protocol/vectors, computed inside the engine;
 * - the malicious relay: each attack, every invalid message, histories drawn from the seeds;
 * - the parity tests: a real client on a real relay gets the same as from every other runtime.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ManualTimer, MemoryStorage, seededRandom } from "@blindrelay/agent-sdk/memory";
import { isForward } from "@blindrelay/protocol/crypto";
import { VECTOR_FILE_NAMES } from "@blindrelay/protocol/testing";
import { FORWARD_FILE_NAMES } from "@blindrelay/protocol/testing/forward";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEAD_NETWORK } from "../hostile-boards/hardware.ts";
import { hostileRelayTests } from "../hostile-boards/hostile-relay-tests.ts";
import { parityTests } from "../runtime-parity/parity-tests.ts";
import { PROGRAMS } from "../runtime-parity/programs.ts";
import { ATTACKED_PROGRAM, attackedHardware, type MakeDevice } from "./attacked-hardware.ts";
import type { DeviceUnderTest, RuntimeUnderTest } from "./device.ts";
import { parityRuntime } from "./parity-runtime.ts";

const SEEDS = [1];
const MOVES_AT_RANDOM = 100;

const programs = {
  ...Object.fromEntries(Object.entries(PROGRAMS).map(([name, { path }]) => [name, path])),
  [ATTACKED_PROGRAM]: fileURLToPath(new URL("../hostile-boards/program.ts", import.meta.url)),
};

const FILE_NAMES: { readonly [field: string]: string } = {
  ...VECTOR_FILE_NAMES,
  ...FORWARD_FILE_NAMES,
};

const vectorFile = (field: string): string => {
  const name = FILE_NAMES[field];
  return readFileSync(
    fileURLToPath(import.meta.resolve(`@blindrelay/protocol/vectors/${name}`)),
    "utf8",
  );
};

export const runtimeTests = (runtime: RuntimeUnderTest): void => {
  const forward = runtime.versions.some(isForward);
  const fields = Object.keys(forward ? FILE_NAMES : VECTOR_FILE_NAMES);
  describe(runtime.title, () => {
    let makeDevice: MakeDevice;
    beforeAll(async () => {
      makeDevice = await runtime.load(programs);
    }, 300_000);

    describe("the vectors", () => {
      let device: DeviceUnderTest;
      beforeAll(() => {
        device = makeDevice({
          timer: new ManualTimer(),
          link: DEAD_NETWORK,
          random: seededRandom(1),
          storage: new MemoryStorage(),
          log: () => undefined,
          onState: () => undefined,
        });
      });
      afterAll(() => device.end());

      it.each(fields)("agree: %s", (field) => {
        expect(device.checkVectors(field, vectorFile(field))).toEqual([]);
      });

      it("are compared: a wrong one is detected", () => {
        const bent = vectorFile("hmac").replace(/"mac": "./, '"mac": "_');
        expect(device.checkVectors("hmac", bent)).not.toEqual([]);
      });
    });

    describe("behind a malicious relay, agents", () => {
      hostileRelayTests({
        makeHardware: () => attackedHardware(makeDevice),
        seeds: SEEDS,
        movesAtRandom: MOVES_AT_RANDOM,
      });
    });

    describe.skipIf(!forward)("behind a malicious relay, agents with forward secrecy", () => {
      hostileRelayTests({
        makeHardware: () => attackedHardware(makeDevice),
        seeds: SEEDS,
        movesAtRandom: MOVES_AT_RANDOM,
        versions: ["3", "4"],
      });
    });

    describe("on a real relay", () => {
      parityTests(parityRuntime(runtime, () => makeDevice));
    });
  });
};
