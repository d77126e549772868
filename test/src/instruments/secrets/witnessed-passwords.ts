/**
 * Stands in for the relay's passwords wherever tests run: the witness hears of each that is set.
 */
import { hashPassword as hash } from "../../../../relay-server/src/control/passwords.ts";
import { noteSecret } from "./witness.ts";

export * from "../../../../relay-server/src/control/passwords.ts";

export const hashPassword: typeof hash = async (password) => {
  noteSecret(password);
  const hashed = await hash(password);
  noteSecret(hashed);
  return hashed;
};
