/** The order of callers that wait to log in. */
import { expect, test } from "vitest";
import { LoginOrder } from "./login-order.ts";

test("a network that guesses comes after one that does not, an address that guesses after both", () => {
  const logins = new LoginOrder();
  for (let host = 1; host <= 9; host++) logins.wrong(`203.0.113.${host}`, 0);
  expect(logins.of("192.0.2.1", 0)).toBe(0);
  expect(logins.of("203.0.113.77", 0)).toBe(9);
  expect(logins.of("203.0.9.9", 0)).toBe(9);
  expect(logins.of("203.0.113.1", 0)).toBeGreaterThan(1000);
  expect(logins.of("::ffff:203.0.113.1", 0)).toBe(logins.of("203.0.113.1", 0));
});

test("a login that was not checked counts for its network, but not for its address", () => {
  const logins = new LoginOrder();
  for (let i = 0; i < 5; i++) logins.unheard("203.0.113.1", 0);
  expect(logins.of("203.0.113.1", 0)).toBe(5);
  expect(logins.of("203.0.113.2", 0)).toBe(5);
});

test("an IPv6 network is as large as a provider's", () => {
  const logins = new LoginOrder();
  for (let site = 1; site <= 3; site++) logins.wrong(`2001:db8:${site}::1`, 0);
  expect(logins.of("2001:db8:ffff::1", 0)).toBe(3);
  expect(logins.of("2001:db9::1", 0)).toBe(0);
});

test("counts are forgotten after some minutes", () => {
  const logins = new LoginOrder();
  logins.wrong("192.0.2.1", 1_000_000);
  expect(logins.of("192.0.2.2", 1_000_000 + 140_000)).toBe(1);
  expect(logins.of("192.0.2.2", 1_000_000 + 160_000)).toBe(1);
  expect(logins.of("192.0.2.2", 1_000_000 + 310_000)).toBe(0);
  logins.wrong("192.0.2.1", 2_000_000);
  expect(logins.of("192.0.2.2", 3_000_000)).toBe(0);
});

test("further networks are not counted, and cost nothing", () => {
  const logins = new LoginOrder();
  for (let n = 0; n < 20_000; n++) logins.wrong(`10.${n >> 8}.${n & 255}.1`, 0);
  expect(logins.of("10.0.99.99", 0)).toBe(256);
  expect(logins.of("10.77.0.1", 0)).toBeLessThanOrEqual(1_000_256);
});
