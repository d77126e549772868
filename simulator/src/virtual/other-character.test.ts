import { fromBase64url } from "@blindrelay/protocol/crypto";
import { expect, it } from "vitest";
import { otherCharacter } from "./other-character.ts";

const VISIBLE = Array.from({ length: 94 }, (_, i) => 33 + i);
const DIGITS = VISIBLE.map((code) => String.fromCharCode(code)).filter((each) =>
  /[\w-]/.test(each),
);

/** What becomes of a packet's text in which `before` is corrupted: unreadable, or some bytes. */
const fateOf = (before: string, drawn: number, next: string): string => {
  const other = otherCharacter(before, drawn);
  try {
    const text = JSON.parse(`"A${other}${next}"`);
    return fromBase64url(text) === null ? "no base64url" : "bytes";
  } catch {
    return "no JSON";
  }
};

it("corrupts a ciphertext in one way, whatever it is", () => {
  for (const drawn of VISIBLE) {
    const middle = DIGITS.flatMap((before) =>
      ["b", "u", "A", "0"].map((next) => fateOf(before, drawn, `${next}A`)),
    );
    expect(new Set(middle).size, String.fromCharCode(drawn)).toBe(1);
    const last = DIGITS.filter((each) => "AQgw".includes(each));
    expect(new Set(last.map((before) => fateOf(before, drawn, ""))).size).toBe(1);
  }
});

it("puts another character in the place of any", () => {
  for (const drawn of VISIBLE) {
    for (const before of VISIBLE.map((code) => String.fromCharCode(code))) {
      expect(otherCharacter(before, drawn)).not.toBe(before);
    }
  }
});
