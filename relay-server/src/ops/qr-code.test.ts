/** The drawing has every module, white where it is lit, whatever the terminal's colours are. */
import { qrCodeFor } from "@blindrelay/protocol/command-line";
import { encode, renderUnicodeCompact } from "uqr";
import { expect, test } from "vitest";

const URI =
  "otpauth://totp/blindrelay:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=blindrelay";
/** Two modules, one above the other: whether each is dark. */
const HALVES: Record<string, [boolean, boolean]> = {
  "█": [false, false],
  "▀": [false, true],
  "▄": [true, false],
  " ": [true, true],
};

test("the drawing has every module, with a white border", () => {
  const lines = qrCodeFor(renderUnicodeCompact, URI, { isTTY: true }, "xterm").split("\n");
  const rows: boolean[][] = [];
  for (const line of lines) {
    expect([line.slice(0, 8), line.slice(-4)]).toEqual(["\u001b[97;40m", "\u001b[0m"]);
    const blocks = line.slice(8, -4);
    const columns = [...blocks].map((block) => HALVES[block] as [boolean, boolean]);
    rows.push(
      columns.map(([upper]) => upper),
      columns.map(([, lower]) => lower),
    );
  }
  const { data, size } = encode(URI, { border: 2 });
  expect(rows.slice(0, size)).toEqual(data);
  expect(rows[0]).toEqual(Array(size).fill(false));
  expect(size).toBeLessThan(80);
});
