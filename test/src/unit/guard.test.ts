/** A unit test that is none is reported (../instruments/unit-setup.ts). */
import { execFileSync, spawn } from "node:child_process";
import { request } from "node:http";
import { createConnection, createServer } from "node:net";
import { expect, test } from "vitest";

test.each([
  ["starts a process", () => spawn("true")],
  ["starts a process", () => execFileSync("true")],
  ["listens", () => createServer().listen(0)],
  ["connects", () => createConnection(1)],
  ["connects", () => request("http://127.0.0.1:1")],
])("a unit test that %s fails, with the project it belongs to", (what, act) => {
  expect(act).toThrow(`a unit test ${what}: name its file`);
});
