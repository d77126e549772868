import { expect, it } from "vitest";
import { toBase64url } from "../encoding/base64url.ts";
import { deviceKeyProblem } from "./device-key.ts";
import { aeadOf, isForward, isVersion } from "./versions.ts";

const keyOf = (length: number): string => toBase64url(new Uint8Array(length).fill(7));

it("a device key has 32 bytes, and belongs to the versions with an exchange", () => {
  for (const v of ["1", "2"] as const) {
    expect(deviceKeyProblem(v, undefined)).toBe(null);
    expect(deviceKeyProblem(v, keyOf(32))).toBe(
      'a device key belongs to packet versions "3" and "4"',
    );
  }
  for (const v of ["3", "4"] as const) {
    expect(deviceKeyProblem(v, undefined)).toBe(null);
    expect(deviceKeyProblem(v, keyOf(32))).toBe(null);
    for (const key of ["", keyOf(31), keyOf(33), `${keyOf(32)}=`, "?".repeat(43)]) {
      expect(deviceKeyProblem(v, key)).toBe("a device key is 43 characters of base64url");
    }
  }
});

it("there are four versions: two AEADs, each without an exchange and with one", () => {
  const versions = ["1", "2", "3", "4"] as const;
  expect(versions.map(isVersion)).toEqual([true, true, true, true]);
  expect(["0", "5", "", 1, null].map(isVersion)).toEqual(Array(5).fill(false));
  expect(versions.map(isForward)).toEqual([false, false, true, true]);
  expect(versions.map(aeadOf)).toEqual(["1", "2", "1", "2"]);
});
