/**
 * What stands in the place of a character that was corrupted: the drawn one, or one like it where
 * that was there already. What becomes of the message must not depend on a ciphertext, which is
 * another one with a model of cryptography.
 */

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BACKSLASH = 92;
const ASTERISK = 42;

/** `drawn`: the code of a visible ASCII character. */
export const otherCharacter = (before: string, drawn: number): string => {
  // A backslash would make an escape of what follows, or not.
  const code = drawn === BACKSLASH ? ASTERISK : drawn;
  const after = String.fromCharCode(code);
  if (after !== before) return after;
  const digit = BASE64URL.indexOf(before);
  // The lower bits say whether a text may end with it.
  return digit < 0 ? String.fromCharCode(code ^ 1) : (BASE64URL[digit ^ 32] as string);
};
