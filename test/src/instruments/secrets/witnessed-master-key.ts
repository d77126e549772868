/**
 * Replaces the relay's master key module in all tests: the witness registers the key in every
 * encoding.
 */
import {
  makeMasterKey as make,
  readMasterKey as read,
} from "../../../../relay-server/src/control/master-key.ts";
import { noteSecret } from "./witness.ts";

export * from "../../../../relay-server/src/control/master-key.ts";

const noted = (key: Uint8Array): Uint8Array => {
  for (const form of ["hex", "base64", "base64url"] as const) {
    noteSecret(Buffer.from(key).toString(form));
  }
  return key;
};

export const makeMasterKey: typeof make = (...given) => noted(make(...given));
export const readMasterKey: typeof read = (...given) => noted(read(...given));
