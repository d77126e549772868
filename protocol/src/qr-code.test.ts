import { expect, it } from "vitest";
import { qrCodeFor } from "./qr-code.ts";

const draw = (text: string, { border }: { border: number }) => `${text}\nborder ${border}`;

it("each line is white on black, and the colours after it are as before", () => {
  const drawn = qrCodeFor(draw, "text", { isTTY: true }, "xterm").split("\n");
  expect(drawn).toEqual(["\u001b[97;40mtext\u001b[0m", "\u001b[97;40mborder 2\u001b[0m"]);
});

it.each([
  ["a pipe", "text", {}, "xterm"],
  ["a terminal without colours", "text", { isTTY: true }, "dumb"],
  ["a terminal of unknown kind", "text", { isTTY: true }, undefined],
  ["a terminal, of no text", "", { isTTY: true }, "xterm"],
])("nothing is drawn on %s", (_name, text, output, term) => {
  expect(qrCodeFor(draw, text, output, term)).toBe("");
});
