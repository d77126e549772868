import { expect, test } from "vitest";
import { loginOf } from "./login.ts";

test.each([
  ["", "", ""],
  ["ada@", "ada", ""],
  ["ada:a%40b%25@", "ada", "a@b%"],
  ["a%64a:50%@", "ada", "50%"],
  ["ada:100%;ä@", "ada", "100%;ä"],
  ["ada:%zz%ff@", "ada", "%zz%ff"],
])("the login in %j is %j with %j", (login, user, password) => {
  expect(loginOf(new URL(`http://${login}relay.example`))).toEqual({ user, password });
});
