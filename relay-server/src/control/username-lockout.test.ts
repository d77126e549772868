/**
 * Failed logins by name, over REST: also from many addresses, and without locking the owner out.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { PASSWORD, type Rest, startRest } from "../http/testing/test-rest.ts";
import { UsernameLockout } from "./username-lockout.ts";

let rest: Rest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.close());

const login = (address: string, password: string, username = "admin") =>
  rest.call("POST", "/auth/login", { body: { username, password }, address });

/** Ten failures, none of which locks its address out. */
const guess = async (username: string) => {
  for (let i = 0; i < 9; i += 1) {
    const answer = await login(`198.51.100.${i % 5}`, "wrong", username);
    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([401, undefined]);
  }
  return login("198.51.100.9", "wrong", username);
};

test("the tenth failure locks the name for every new address, even with the correct password", async () => {
  const tenth = await guess("admin");
  expect([tenth.statusCode, tenth.headers["retry-after"]]).toEqual([401, "600"]);
  const right = await login("203.0.113.1", PASSWORD);
  expect([right.statusCode, right.json().code]).toEqual([429, "LOCKED_OUT"]);
  expect(right.headers["retry-after"]).toBe("600");
  rest.clock.nowMs += 600_000;
  expect((await login("203.0.113.1", PASSWORD)).statusCode).toBe(200);
});

test("an address from which that name has logged in is not locked", async () => {
  expect((await login("192.0.2.7", PASSWORD)).statusCode).toBe(200);
  await guess("admin");
  expect((await login("192.0.2.7", PASSWORD)).statusCode).toBe(200);
  expect((await login("192.0.2.8", PASSWORD)).statusCode).toBe(429);
});

test("a name that does not exist gets the same answers, and other names are not affected", async () => {
  await rest.addUser("grace");
  const tenth = await guess("nobody");
  expect([tenth.statusCode, tenth.headers["retry-after"]]).toEqual([401, "600"]);
  expect((await login("203.0.113.1", PASSWORD, "nobody")).statusCode).toBe(429);
  expect((await login("203.0.113.1", PASSWORD, "grace")).statusCode).toBe(200);
});

test("tokens are not affected by a locked name", async () => {
  const { user } = (await login("192.0.2.7", PASSWORD)).json();
  await guess("admin");
  const answer = await rest.call("GET", "/agents", {
    token: user.api_token,
    address: "203.0.113.1",
  });
  expect(answer.statusCode).toBe(200);
});

test("long names are remembered as briefly as others, and separately", () => {
  const names = new UsernameLockout();
  const keys: string[] = [];
  names.onFailure = (key) => keys.push(key);
  for (const end of ["a", "b"]) names.fail(`${"🔑".repeat(255)}${end}`, "198.51.100.1", 1000);
  names.fail("ada", "198.51.100.1", 1000);
  expect(new Set(keys).size).toBe(3);
  expect(Math.max(...keys.map(({ length }) => length))).toBe(43);
});
