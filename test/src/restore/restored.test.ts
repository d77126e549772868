/**
 * A backup is restored under a fleet at one address: every device holds a session token that the
 * store does not know. Once, the fifth of these locked the address out, and each device offered the
 * same token again after the lockout: 30 devices needed 40 minutes, 1,000 a day and a half.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Site } from "./site.ts";

const AGENTS = 1_000;
const MINUTE_MS = 60_000;

let site: Site;
beforeEach(async () => {
  site = new Site();
  await site.start(AGENTS);
  await site.stopRelay();
  site.backUp();
  await site.startRelay();
  await site.run(3 * MINUTE_MS);
  expect(site.online).toBe(AGENTS);
});
afterEach(() => site.end());

const restore = async (): Promise<void> => {
  await site.stopRelay();
  site.restore();
  await site.startRelay();
};

test("1,000 agents are back within five minutes", async () => {
  await restore();
  await site.run(5 * MINUTE_MS);
  expect(site.online).toBe(AGENTS);
  expect([site.lockout.failures, site.lockout.lockouts]).toEqual([0, 0]);
});

test("at an address that is locked out at that moment, they are back after that and two minutes", async () => {
  await restore();
  site.lockOut();
  await site.run(10 * MINUTE_MS - 1_000);
  expect(site.online).toBe(0);
  await site.run(3 * MINUTE_MS);
  expect(site.online).toBe(AGENTS);
  expect(site.lockout.lockouts).toBe(1);
});
