import { expect, it } from "vitest";
import { harmless } from "./terminal-text.ts";

it("keeps lines and letters, and marks what steers a terminal or turns its text around", () => {
  expect(harmless("a\nß€😀 ~")).toBe("a\nß€😀 ~");
  expect(harmless("\u001b[2J\r\t\u0000\u007f\u009b\u202e\u2066\u2028x")).toBe(
    "\ufffd[2J\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdx",
  );
});
