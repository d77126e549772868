import { describe, expect, it } from "vitest";
import { addressKey } from "./address-group.ts";
import { Lockout } from "./lockout.ts";

const A = "198.51.100.1";

// getgrav/grav-plugin-login#204, zulip/zulip#21544: each of the 2^64 addresses had its own tries.
describe("addressKey", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:c000:0207", "192.0.2.7"],
    ["0:0:0:0:0:ffff:192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::", "2001:db8:1:2::/64"],
    ["2001:db8::5:6:7:8:9", "2001:db8:0:5::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["64:ff9b::192.0.2.7", "192.0.2.7"],
    ["64:ff9b::c000:207", "192.0.2.7"],
    ["64:ff9b:1::192.0.2.7", "64:ff9b:1:0::/64"],
    ["2002:c000:0207::1", "192.0.2.7"],
    ["2002:c000:207:ffff:1:2:3:4", "192.0.2.7"],
    ["unknown", "unknown"],
  ])("%s counts as %s", (address, key) => {
    expect(addressKey(address)).toBe(key);
  });
});

describe("Lockout", () => {
  it("locks out with the fifth failure within the window, for the duration", () => {
    const lockout = new Lockout();
    expect([1, 2, 3, 4].map((at) => lockout.fail(A, at))).toEqual([0, 0, 0, 0]);
    expect(lockout.secondsLeft(A, 4)).toBe(0);
    expect(lockout.fail(A, 1_000)).toBe(600);
    expect(lockout.secondsLeft(A, 1_000)).toBe(600);
    expect(lockout.secondsLeft(A, 1_001)).toBe(600);
    expect(lockout.secondsLeft(A, 600_999)).toBe(1);
    expect(lockout.secondsLeft(A, 601_000)).toBe(0);
    expect(lockout.lockouts).toBe(1);
  });

  it("says how many failures are left", () => {
    const lockout = new Lockout();
    const left = [0, 1, 2, 3, 4].map((at) => {
      lockout.fail(A, at);
      return lockout.failuresLeft(A, at);
    });
    expect(left).toEqual([4, 3, 2, 1, 0]);
    expect(lockout.failuresLeft("198.51.100.2", 4)).toBe(5);
    expect(lockout.failuresLeft(A, 600_004)).toBe(5);
    for (const at of [700_000, 900_000]) lockout.fail(A, at);
    expect(lockout.failuresLeft(A, 1_000_000)).toBe(4);
  });

  it("forgets failures older than the window, one by one", () => {
    const lockout = new Lockout();
    for (const at of [0, 1, 2, 150_000]) lockout.fail(A, at);
    expect(lockout.fail(A, 300_003)).toBe(0);
    expect(lockout.fail(A, 300_004)).toBe(0);
    expect(lockout.fail(A, 300_005)).toBe(0);
    expect(lockout.fail(A, 300_006)).toBe(600);
  });

  it("starts over after a lockout", () => {
    const lockout = new Lockout();
    for (let i = 0; i < 5; i++) lockout.fail(A, i);
    expect(lockout.fail(A, 10)).toBe(600);
    expect(lockout.failures).toBe(5);
    for (let i = 0; i < 4; i++) expect(lockout.fail(A, 700_000 + i)).toBe(0);
    expect(lockout.fail(A, 700_005)).toBe(600);
  });

  it("is bounded, and forgets entries by itself", () => {
    const lockout = new Lockout({ maxAddresses: 10 });
    for (let i = 0; i < 100; i++) lockout.fail(`192.0.2.${i}`, i);
    expect(lockout.size).toBe(10);
    lockout.expire(300_095);
    expect(lockout.size).toBe(4);
    lockout.expire(10_000_000);
    expect(lockout.size).toBe(0);
  });
});
