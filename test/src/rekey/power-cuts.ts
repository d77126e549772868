/**
 * Power cuts at every place of what a device writes while its secret is replaced: afterwards
 * exactly one secret opens, the one before or the one after, and no file has the other one.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { type Stage, secretOf } from "./stage.ts";

/** To run more: REKEY_CUTS=200 npx vitest run test/src/rekey */
const CUTS = Number(process.env.REKEY_CUTS ?? 8);

/** What survives a power cut. */
export interface Medium {
  /** Of all that was written, each of which a power cut can follow. */
  readonly steps: number;
  /** The power goes in the `step`-th step from now, counted from 1. */
  cutAfter(step: number): void;
  /** With power. */
  copy(): Medium;
  texts(): string[];
}

export interface Hardware {
  readonly title: string;
  readonly isThere: boolean;
  readonly versions: readonly Version[];
  load(): Promise<void>;
  /** A new device. */
  provision(agentToken: string, version: Version): Promise<Medium>;
  /**
   * One life, with this secret in its configuration, until `act` is done. Rejects if it does not
   * start.
   */
  live(
    medium: Medium,
    configured: string,
    version: Version,
    act: (stage: Stage) => Promise<void>,
  ): Promise<void>;
}

/** What a device that lost its power throws, or the stage that waits for it. */
const NO_POWER = /storage|power|prefs|flash|state folder|nothing happens/;

const [FIRST, OLD, NEW] = [secretOf(1), secretOf(2), secretOf(3)] as const;

export const powerCutTests = (hardware: Hardware): void => {
  const { isThere, versions } = hardware;

  beforeAll(async () => {
    if (isThere) await hardware.load();
  });

  describe.skipIf(!isThere).each(versions)("under version %s", (version) => {
    // What it was provisioned with stays in its configuration.
    const live = (medium: Medium, act: (stage: Stage) => Promise<void>): Promise<void> =>
      hardware.live(medium, FIRST, version, act);

    const rekey =
      (from: string, to: string) =>
      async (stage: Stage): Promise<void> => {
        const session = await stage.open(from, version);
        if (session !== null) await stage.call(session, "system.rekey", { secret: to, id: "one" });
        await stage.opens(to, version);
      };

    const liveUntilCut = async (medium: Medium, step: number): Promise<void> => {
      medium.cutAfter(step);
      try {
        await live(medium, rekey(OLD, NEW));
      } catch (error) {
        if (!NO_POWER.test(`${error}`)) throw error;
      }
    };

    it(`${CUTS} power cuts while rekeying leave one secret that opens`, async () => {
      const origin = await hardware.provision(FIRST, version);
      await live(origin, rekey(FIRST, OLD));
      const whole = origin.copy();
      const before = whole.steps;
      await live(whole, rekey(OLD, NEW));
      const steps = whole.steps - before;
      const ends = { old: 0, new: 0 };
      for (let cut = 0; cut < CUTS; cut++) {
        const once = origin.copy();
        await liveUntilCut(once, 1 + Math.floor((cut * steps) / CUTS));
        const twice = once.copy();
        if (cut % 3 === 2) await liveUntilCut(twice, 1 + ((cut * 97) % steps));
        const end = twice.copy();
        await live(end, async (stage) => {
          // In the order of a client, whose session would confirm a trial.
          const isNew = await stage.opens(NEW, version);
          expect(await stage.opens(OLD, version)).toBe(!isNew);
          expect(await stage.opens(FIRST, version)).toBe(false);
          ends[isNew ? "new" : "old"]++;
          if (isNew) expect(end.texts().filter((text) => text.includes(OLD))).toEqual([]);
        });
      }
      console.log(
        `${hardware.title}, "${version}": ${steps} steps, ${CUTS} cuts: ${ends.old} old, ${ends.new} new`,
      );
      expect(Math.min(ends.old, ends.new)).toBeGreaterThan(0);
    });
  });
};
