import { expect, it, vi } from "vitest";
import { wifiProblem } from "./wifi-problem.ts";

const NAME = 'Wi-Fi "hall 7"';

it.each([
  ["4WAY_HANDSHAKE_TIMEOUT", `${NAME} refuses the password (4WAY_HANDSHAKE_TIMEOUT): provision`],
  ["NO_AP_FOUND", `${NAME} is not in reach (NO_AP_FOUND)`],
  ["no modem", `${NAME} cannot be joined: no modem`],
])("reports the problem: %s", (said, problem) => {
  for (const password of ["", "a long password"])
    expect(wifiProblem(NAME, password, said)).toContain(problem);
});

it.each(["a long password", 'ab"cdefgh', "ab\\cdefgh", 'abcdefg"', "abcdefg\\"])(
  "does not repeat the password, unchanged or quoted: %s",
  (password) => {
    const quoted = JSON.stringify(password);
    const said = `AT+CWJAP="hall 7",${quoted} +CWJAP:2 (${password})`;
    expect(wifiProblem(NAME, password, said)).toBe(
      `${NAME} refuses the password (AT+CWJAP="hall 7","..." +CWJAP:2 (...)): provision this board with the right one`,
    );
  },
);

it("keeps the text on an engine that splits a text by a much longer one into nothing", () => {
  const { split } = String.prototype;
  const ofEspruino = function (this: string, by: string): string[] {
    return by.length > this.length + 1 ? [] : split.call(this, by as never);
  };
  vi.spyOn(String.prototype, "split").mockImplementation(ofEspruino as typeof split);
  expect(wifiProblem(NAME, "a long password", "NO_AP")).toBe(`${NAME} is not in reach (NO_AP)`);
});
