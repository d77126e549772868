/**
 * What is signed, and the order of versions, compared with SemVer's own list and an independent
 * implementation.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  isAbove,
  isVersionText,
  listedReleaseText,
  MAX_RELEASE_SIGNATURES,
  RELEASE_VERSION_PATTERN,
  releaseSigners,
  releaseText,
} from "./releases.ts";

it("writes the signed text of the contract", () => {
  const sha256 = "ab".repeat(32);
  const release = { runtime: "espruino", channel: "stable", version: "1.4.0", size: 65536, sha256 };
  expect(releaseText(release)).toBe(`blindrelay-release|espruino|stable|1.4.0|65536|${sha256}`);
});

const LISTED = {
  ...{ runtime: "node", channel: "stable", version: "1.4.0", size: 65536 },
  ...{ sha256: "ab".repeat(32), list: 7, not_after: 1_795_254_067 },
};

it("writes the second signed text of the contract", () => {
  expect(listedReleaseText(LISTED)).toBe(
    `blindrelay-release-2|node|stable|1.4.0|65536|${LISTED.sha256}|7|1795254067`,
  );
});

it("counts each pinned key that signed once, and verifies no more than a release may have", () => {
  const asked: string[] = [];
  const verify = (id: string, text: string, signature: string): boolean => {
    expect(text).toBe(listedReleaseText(LISTED));
    asked.push(id);
    return signature === `by ${id}`;
  };
  const by = (key_id: string, signature = `by ${key_id}`) => ({ key_id, signature });
  const signed = [by("a"), by("x"), by("b", "by a"), by("a"), by("b")];
  expect(releaseSigners(LISTED, signed, ["a", "b", "c"], verify)).toEqual(["a", "b"]);
  expect(asked).toEqual(["a", "b", "b"]);
  asked.length = 0;
  const many = [...Array.from({ length: 99 }, () => by("a", "junk")), by("b")];
  expect(releaseSigners(LISTED, many, ["a", "b"], verify)).toEqual([]);
  expect(asked).toHaveLength(MAX_RELEASE_SIGNATURES);
});

/** SemVer 2.0.0 section 11: its own example, and that for the core. */
const ASCENDING = [
  "0.9.9",
  "1.0.0-0",
  "1.0.0-111111",
  "1.0.0--",
  "1.0.0-A",
  "1.0.0-Z",
  "1.0.0-alpha",
  "1.0.0-alpha.1",
  "1.0.0-alpha.beta",
  "1.0.0-beta",
  "1.0.0-beta.2",
  "1.0.0-beta.11",
  "1.0.0-rc.1",
  "1.0.0-z",
  "1.0.0",
  "1.0.1",
  "1.9.0",
  "1.10.0",
  "2.0.0",
  "99999999999999999999.0.0",
  "99999999999999999999.0.1",
];

it("orders versions as SemVer does, each compared with each", () => {
  ASCENDING.forEach((a, i) => {
    ASCENDING.forEach((b, j) => {
      expect(isAbove(a, b), `${a} above ${b}`).toBe(i > j);
    });
  });
});

it("leaves build metadata out of the order", () => {
  expect(isAbove("1.0.0+2", "1.0.0+1")).toBe(false);
  expect(isAbove("1.0.1+1", "1.0.0+9")).toBe(true);
});

it.each([
  "",
  "1",
  "1.0",
  "1.0.0.0",
  "v1.0.0",
  "01.0.0",
  "1.0.0-",
  "1.0.0-01",
  "1.0.0-a..b",
  "1.0.0+",
  // Beside the letters.
  ..."@[`{_é".split("").map((character) => `1.0.0-${character}`),
])("%j is not a version, and neither above nor below anything", (text) => {
  expect(isVersionText(text)).toBe(false);
  expect(isAbove(text, "0.0.0")).toBe(false);
  expect(isAbove("9.0.0", text)).toBe(false);
});

it("agrees with the published pattern on any text that resembles a version", () => {
  const pattern = new RegExp(RELEASE_VERSION_PATTERN);
  const near = fc.string({ unit: fc.constantFrom(..."0123456789.-.-abZ "), maxLength: 14 });
  fc.assert(
    fc.property(
      fc.oneof(
        near,
        near.map((text) => `1.0.0-${text}`),
      ),
      (text) => {
        expect(isVersionText(text)).toBe(pattern.test(text));
      },
    ),
    { numRuns: 3000 },
  );
});
