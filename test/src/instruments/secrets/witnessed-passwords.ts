/**
 * Replaces the relay's passwords module in all tests: the witness registers each that is set, and a
 * hash costs next to nothing, because tests make thousands and none of them is worth guessing.
 */
import {
  dummyHash,
  DUMMY_HASH as FULL_COST_DUMMY_HASH,
  hashPassword as hash,
} from "../../../../relay-server/src/control/passwords.ts";
import { noteSecret } from "./witness.ts";

export * from "../../../../relay-server/src/control/passwords.ts";
/** The cost for real passwords. */
export { FULL_COST_DUMMY_HASH, hash as hashAtFullCost };

/** The minimum that argon2 accepts. */
const TEST_COST = { memoryKib: 8, passes: 1 };

export const DUMMY_HASH = dummyHash(TEST_COST);

export const hashPassword: typeof hash = async (password, cost = TEST_COST) => {
  noteSecret(password);
  const hashed = await hash(password, cost);
  noteSecret(hashed);
  return hashed;
};
