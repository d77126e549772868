/**
 * The proofs of a push key: each has a serial above the last one, which is stored before anything
 * else is changed, and stays when programs are discarded; otherwise an older one could come again.
 *
 * [portable]
 */
import { equalTexts, own } from "@blindrelay/protocol/crypto";
import type { StoragePort } from "../ports.ts";
import { readNewer, writeNext } from "./record.ts";

/** Two files. */
const SERIAL = "push-serial";
const MAX_SERIAL = 9007199254740991;

const NO_SERIAL = { n: 0, serial: 0 };

/** The last serial that was accepted; 0 if none was. */
export const lastSerial = (storage: StoragePort): number =>
  readNewer(storage, SERIAL, NO_SERIAL).serial;

/** Throws if it is not stored. */
export const keepSerial = (storage: StoragePort, serial: number): void => {
  writeNext(storage, SERIAL, readNewer(storage, SERIAL, NO_SERIAL), { serial: serial });
};

/** The serial of a call. Throws unless the call's proof is `proofOf` it. `how`: to give one. */
export const provenSerial = (
  params: object,
  proofOf: (serial: number) => string,
  how: string,
): number => {
  const proof = own(params, "proof");
  const serial = own(params, "serial");
  if (proof === undefined) throw new Error(`it wants a push key: ${how} --push-key FILE`);
  if (
    typeof proof !== "string" ||
    typeof serial !== "number" ||
    !(serial >= 1 && serial <= MAX_SERIAL) ||
    serial % 1 !== 0 ||
    !equalTexts(proof, proofOf(serial))
  )
    throw new Error("not proven by its push key");
  return serial;
};

/** Throws unless `serial` is a new one. */
export const demandNewSerial = (serial: number, last: number): void => {
  if (serial <= last) throw new Error(`the serial must be above ${last}`);
};
