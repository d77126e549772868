/** For property tests: JSON texts, and such that are broken at one place. */
import fc from "fast-check";

export const jsonText = fc.json({ stringUnit: "binary-ascii", depthSize: "small" });

/** One of `texts` with a piece put in anywhere, or put in place of a character. */
export const brokenText = (
  texts: fc.Arbitrary<string>,
  pieces: fc.Arbitrary<string>,
): fc.Arbitrary<string> =>
  fc.tuple(texts, fc.nat(), pieces).map(([text, at, piece]) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + piece + text.slice(place + (at & 1));
  });
