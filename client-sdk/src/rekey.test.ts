/** Serials of a push key's proofs, as hostile agents say them. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { CallError } from "./errors.ts";
import { nextSerial } from "./rekey.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const YEAR_2200_MS = Date.UTC(2200, 0, 1);
const HOSTILE = [
  ...[2 ** 53, 2 ** 53 - 1, 2 ** 53 - 2, 1e308, Number.POSITIVE_INFINITY, Number.NaN],
  ...[-1, -1e308, 0.5, 5e-324, "5", null, undefined, {}],
];
const hostileNumber = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.double(),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
);

const serialOrNull = (last: unknown, nowMs: number): number | null => {
  try {
    return nextSerial("pump-7", last, nowMs);
  } catch (error) {
    if (error instanceof CallError) return null;
    throw error;
  }
};

it.each([
  [0, 1],
  [-0, 1],
  [41, 42],
  // Other programs may take them from a clock, of this computer's time or slightly later.
  [NOW_MS + 60_000, NOW_MS + 60_001],
  [(NOW_MS - 1) * 1000, (NOW_MS - 1) * 1000 + 1],
])("of an agent that says %j is the next one", (last, serial) => {
  expect(serialOrNull(last, NOW_MS)).toBe(serial);
});

it.each(HOSTILE)("of an agent that says %j is none, for a reason", (last) => {
  expect(serialOrNull(last, NOW_MS)).toBeNull();
});

it("names the fix where the clock or the agent is wrong", () => {
  expect(() => nextSerial("pump-7", 2 ** 53 - 2, NOW_MS)).toThrow(
    "pump-7 says a last serial that is too high for 2026-01-01, so no proof was made: check this computer's date; if it is right, give the device a new agent_token by its cable",
  );
});

it("always leaves a device a later one, whatever an impostor says", () => {
  const push = fc.record({ said: hostileNumber, afterMs: fc.integer({ min: 1, max: 1e9 }) });
  const startMs = fc.integer({ min: 1, max: YEAR_2200_MS });
  fc.assert(
    fc.property(startMs, fc.array(push, { maxLength: 20 }), (start, pushes) => {
      let [now, accepted] = [start, 0];
      for (const { said, afterMs } of pushes) {
        now += afterMs;
        const proven = serialOrNull(said, now);
        // The impostor hands the proof to the device.
        if (proven !== null && proven > accepted) accepted = proven;
        now += 1;
        expect(serialOrNull(accepted, now)).toBe(accepted + 1);
      }
    }),
  );
});
