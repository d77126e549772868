/**
 * The form of a device's pinned key (section 2b), of either half.
 *
 * [portable]
 */
import { fromBase64url } from "../encoding/base64url.ts";
import { KEY_BYTES } from "../spec.ts";
import { isForward, type Version } from "./versions.ts";

/** What is wrong with a device key, as a sentence; null if it is 32 bytes, or undefined. */
export const deviceKeyProblem = (version: Version, key: string | undefined): string | null => {
  if (key === undefined) return null;
  if (!isForward(version)) return `a device key belongs to packet versions "3" and "4"`;
  const bytes = fromBase64url(key);
  return bytes !== null && bytes.length === KEY_BYTES
    ? null
    : "a device key is 43 characters of base64url";
};
