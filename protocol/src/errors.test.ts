import { expect, it } from "vitest";
import { ERRORS, isErrorCode } from "./errors.ts";

/** The list of section 3, in the same order. */
const ON_A_LINK = [
  "LIMIT_EXCEEDED",
  "SESSION_EXPIRED",
  "AGENT_NOT_FOUND",
  "AGENT_OFFLINE",
  "UNKNOWN_SESSION",
  "SID_IN_USE",
  "REQUEST_ID_IN_USE",
  "SLOW_CONSUMER",
  "RATE_LIMITED",
  "TOO_LARGE",
  "BAD_MESSAGE",
  "UNKNOWN_TYPE",
  "AUTH_REQUIRED",
  "AUTH_TIMEOUT",
  "REPLACED",
  "TAKEOVER_LOOP",
  "RESTARTING",
  "UNAVAILABLE",
  "INTERNAL",
];

const entries = Object.entries(ERRORS);

it("contains every code of section 3", () => {
  expect(Object.keys(ERRORS)).toEqual(expect.arrayContaining(ON_A_LINK));
});

it("closes with the codes that section 3 specifies", () => {
  const closing = Object.fromEntries(
    entries.filter(([, entry]) => entry.close !== null).map(([code, entry]) => [code, entry.close]),
  );
  expect(closing).toEqual({
    LIMIT_EXCEEDED: 1008,
    SESSION_EXPIRED: 1008,
    AUTH_TIMEOUT: 1008,
    REPLACED: 1008,
    TAKEOVER_LOOP: 1008,
    RESTARTING: 1012,
    LOCKED_OUT: 1008,
    REVOKED: 1008,
  });
});

it("describes every code in one sentence", () => {
  for (const [code, entry] of entries) {
    expect(code).toMatch(/^[A-Z][A-Z_]*[A-Z]$/);
    expect(entry.meaning).toMatch(/^[A-Z].*\.$/);
    expect(entry.http === null || (entry.http >= 400 && entry.http < 600)).toBe(true);
  }
});

it("recognizes codes, but not what every object inherits", () => {
  expect(isErrorCode("AGENT_OFFLINE")).toBe(true);
  for (const other of [
    "agent_offline",
    "toString",
    "__proto__",
    "",
    null,
    1,
    undefined,
    ["REPLACED"],
  ]) {
    expect(isErrorCode(other)).toBe(false);
  }
});
