/**
 * Checking a password costs the same whether or not the user exists; guesses are checked one at a
 * time.
 */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, expect, test, vi } from "vitest";
import { PASSWORD, startRest } from "../http/testing/test-rest.ts";
import { findUserByName } from "../store/users.ts";
import { KeyedMutex } from "./keyed-mutex.ts";
import { provesFactors } from "./login-check.ts";
import { DUMMY_HASH, hashPassword, verifyPassword } from "./passwords.ts";
import { drawTotpSecret, otpauthUri, readCode, totpStep } from "./totp.ts";

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

test("an unknown user name costs the same hash as a wrong password", async () => {
  const rest = await startRest();
  const user = await findUserByName(rest.context.store.db, "admin");
  const argon2 = vi.spyOn(crypto, "argon2");
  syncBuiltinESMExports();
  expect(await provesFactors(rest.context, undefined, "anything", undefined)).toBe(false);
  expect(await provesFactors(rest.context, user, "anything", undefined)).toBe(false);
  const [unknown, known] = argon2.mock.calls.map(([kind, { nonce, ...cost }]) => {
    return [kind, (nonce as Buffer).length, cost];
  });
  expect(argon2).toHaveBeenCalledTimes(2);
  expect(unknown).toEqual(known);
  expect(user?.password_hash.length).toBe(DUMMY_HASH.length);
  await rest.close();
});

test("codes tried while the clock was ahead lock nobody out once it is corrected", async () => {
  const rest = await startRest({ totp: true });
  const user = async () => findUserByName(rest.context.store.db, "admin");
  const proves = async (code: string) => provesFactors(rest.context, await user(), PASSWORD, code);
  const rightMs = rest.clock.nowMs;
  rest.clock.nowMs += 2 * 86_400_000;
  for (let i = 0; i < 4; i += 1) expect(await proves("000000")).toBe(false);
  rest.clock.nowMs += 40_000; // the third wrong one locked it, by the wrong clock
  expect(await proves(rest.code())).toBe(true);
  for (let i = 0; i < 3; i += 1) expect(await proves("000000")).toBe(false);
  rest.clock.nowMs = rightMs;
  expect(await proves(rest.code())).toBe(true);
  expect(await proves(rest.code())).toBe(false); // a code works once, as always
  await rest.close();
});

test("a node with a clock slightly behind accepts no code twice and keeps lockouts", async () => {
  const rest = await startRest({ totp: true });
  const user = async () => findUserByName(rest.context.store.db, "admin");
  const proves = async (code: string) => provesFactors(rest.context, await user(), PASSWORD, code);
  // Five seconds before a code's step ends on the node that is behind; on the other it has ended.
  const behindMs = Math.ceil(rest.clock.nowMs / 30_000) * 30_000 - 2000;
  const at = (ms: number) => {
    rest.clock.nowMs = ms;
  };
  at(behindMs);
  const first = rest.code();
  at(behindMs + 35_000);
  const next = rest.code(); // the device's clock is ahead, too
  at(behindMs);
  expect(await proves(first)).toBe(true);
  at(behindMs + 5000);
  expect(await proves(next)).toBe(true);
  at(behindMs);
  expect(await proves(first)).toBe(false);

  let nowMs = behindMs + 60_000;
  for (let i = 0; i < 9; i += 1) {
    at(nowMs);
    expect(await proves("000000")).toBe(false);
    nowMs += 900_000;
  }
  nowMs -= 900_000;
  at(nowMs);
  const good = rest.code();
  expect(await proves(good)).toBe(false);
  at(nowMs - 5000);
  expect(await proves(rest.code())).toBe(false);
  await rest.close();
});

test("a mistyped code costs nothing, and locks nothing", async () => {
  const rest = await startRest({ totp: true });
  const user = async () => findUserByName(rest.context.store.db, "admin");
  expect(await provesFactors(rest.context, await user(), PASSWORD, "000000")).toBe(false);
  expect(await user()).toMatchObject({ totp_failures: 1, totp_rests_until: 0 });
  await rest.close();
});

test("a password must match exactly", async () => {
  const hash = await hashPassword("pässword ☃");
  expect(await verifyPassword("pässword ☃", hash)).toBe("right");
  expect(await verifyPassword("pässword ☃ ", hash)).toBe("wrong");
  expect(await verifyPassword("", hash)).toBe("wrong");
  expect(await hashPassword("pässword ☃")).not.toBe(hash);
  await expect(verifyPassword("x", "plain text")).rejects.toThrow("unknown form");
});

// ulsklyc/yuvomi#608
test("an umlaut of two characters is the same password", async () => {
  const [typed, onMac] = ["schl\u00fcssel lang", "schlu\u0308ssel lang"];
  expect(await verifyPassword(onMac, await hashPassword(typed))).toBe("right");
  expect(await verifyPassword(typed, await hashPassword(onMac))).toBe("right");
  expect(await verifyPassword("schlussel lang", await hashPassword(onMac))).toBe("wrong");
});

test("a hash from before that is replaced at the next login, not at a wrong one", async () => {
  const rest = await startRest();
  const { store } = rest.context;
  const [typed, onMac] = ["schl\u00fcssel lang", "schlu\u0308ssel lang"];
  const before =
    "$argon2id$v=19$m=8,t=1,p=1$VPU0/2dMVtVG0zRZtTGt6g$aDlSAVHnsCNVUSbpoQj6MMZHwmVxFUY5HbxC/gj8ETg";
  await store.db.updateTable("users").set({ password_hash: before }).execute();
  const hash = async () => (await findUserByName(store.db, "admin"))?.password_hash;
  const login = async (password: string): Promise<number> => {
    const body = { username: "admin", password };
    return (await rest.call("POST", "/auth/login", { body })).statusCode;
  };
  expect(await login(typed)).toBe(401);
  expect(await hash()).toBe(before);
  expect(await login(onMac)).toBe(200);
  expect(await hash()).not.toBe(before);
  expect(await login(typed)).toBe(200);
  expect(await login(onMac)).toBe(200);
  await rest.close();
});

// Houdini/two_factor_authentication#155
test.each([
  ["287082", "287082"],
  [" 287 082\r\n", "287082"],
  ["287\u00a0082", "287082"],
  ["287-082", "287082"],
  ["２８７０８２", "287082"],
  ["ABCDE-fghij", "abcde-fghij"],
  ["abcde fghij", "abcde-fghij"],
  ["abcdefghij", "abcde-fghij"],
  ["abcde\u2013fghij\n", "abcde-fghij"],
])("the code %j is read as %s", (given, code) => {
  expect(readCode(given)).toBe(code);
});

test("TOTP codes are those of RFC 6238", () => {
  // the RFC's ASCII secret, appendix B, last six digits
  const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
  expect(totpStep(secret, "287082", 59_000)).toBe(1);
  expect(totpStep(secret, "081804", 1_111_111_109_000)).toBe(37_037_036);
  expect(totpStep(secret, "081804", 1_111_111_139_000)).toBe(37_037_036);
  expect(totpStep(secret, "081804", 1_111_111_171_000)).toBeNull();
  for (const code of ["", "28708", "2870820", "28708a", "２87082"]) {
    expect(totpStep(secret, code, 59_000)).toBeNull();
  }
  expect(drawTotpSecret()).toMatch(/^[A-Z2-7]{32}$/);
  expect(otpauthUri("ada", secret)).toBe(
    `otpauth://totp/blindrelay:ada?secret=${secret}&issuer=blindrelay`,
  );
});

test("a mutex lets one caller pass at a time for each key, also after a failure", async () => {
  const mutex = new KeyedMutex();
  const order: string[] = [];
  const gates: (() => void)[] = [];
  const work =
    (name: string, fails = false) =>
    async () => {
      order.push(name);
      await new Promise<void>((resolve) => gates.push(resolve));
      if (fails) throw new Error(name);
      return name;
    };
  const settled = Promise.allSettled([
    mutex.pass("a", work("a1", true)),
    mutex.pass("a", work("a2")),
    mutex.pass("b", work("b1")),
  ]);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  expect(order).toEqual(["a1", "b1"]);
  for (const open of gates.splice(0)) open();
  await turn();
  expect(order).toEqual(["a1", "b1", "a2"]);
  for (const open of gates.splice(0)) open();
  expect((await settled).map((result) => result.status)).toEqual([
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
});
