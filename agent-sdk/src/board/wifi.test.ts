import { expect, it } from "vitest";
import { wifiProblem } from "./wifi.ts";

const PASSWORD = "a long password";

it.each([
  ["of one byte", "x", PASSWORD],
  ["of 32 bytes", "ü".repeat(16), PASSWORD],
  ["open", "hall 7", ""],
  ["with 8 characters", "hall 7", "12345678"],
  ["with 63 characters", "hall 7", "x".repeat(63)],
])("accepts a network %s", (_what, ssid, password) => {
  expect(wifiProblem({ ssid, password })).toBe(null);
});

it.each([
  ["no name", "", PASSWORD, "1 to 32 bytes, this one 0"],
  ["a name of 33 bytes", `${"ü".repeat(16)}x`, PASSWORD, "1 to 32 bytes, this one 33"],
  ["a control character", "a\nb", PASSWORD, "control characters"],
  ["7 characters", "hall 7", "1234567", "8 to 63 ASCII characters, this one 7"],
  ["64 characters", "hall 7", "y".repeat(64), "8 to 63 ASCII characters, this one 64"],
  ["other characters", "hall 7", "passwörtchen", "8 to 63 ASCII characters"],
])("refuses %s, and does not repeat the password", (_what, ssid, password, problem) => {
  const said = wifiProblem({ ssid, password });
  expect(said).toContain(problem);
  if (password !== PASSWORD) expect(said).not.toContain(password);
});
