/** Replaces the relay's one-time codes module in all tests: the witness registers what it draws. */
import {
  drawRecoveryCodes as drawCodes,
  drawTotpSecret as drawSecret,
} from "../../../../relay-server/src/control/totp.ts";
import { noteSecret } from "./witness.ts";

export * from "../../../../relay-server/src/control/totp.ts";

export const drawTotpSecret: typeof drawSecret = () => {
  const secret = drawSecret();
  noteSecret(secret);
  return secret;
};

export const drawRecoveryCodes: typeof drawCodes = () => {
  const codes = drawCodes();
  codes.forEach(noteSecret);
  return codes;
};
