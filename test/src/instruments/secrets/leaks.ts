/**
 * Finds secrets in standard error and logs. Tokens are recognised by their format and checksum, so
 * a test need not register those that it creates. Passwords, one-time secrets and keys have no
 * format; the stand-ins in this folder register each one when it is created.
 */
import { readToken } from "@blindrelay/protocol";

const TOKEN_LIKE = /(?:acct|agt|sess|login|key|e2e|push)_[0-9A-Za-z]{49}/g;
/** Shorter texts would be found by chance. */
const MIN_LENGTH = 8;
const CONTEXT = 60;

/** Each secret found in a text, shortened, with its context. */
export const leaksIn = (text: string, secrets: ReadonlySet<string>): string[] => {
  const found = new Set<string>();
  for (const [token] of text.matchAll(TOKEN_LIKE)) {
    if (readToken(token).ok) found.add(token);
  }
  for (const secret of secrets) {
    if (secret.length >= MIN_LENGTH && text.includes(secret)) found.add(secret);
  }
  return [...found].map((secret) => {
    const at = text.indexOf(secret);
    const around = text.slice(Math.max(0, at - CONTEXT), at + secret.length + CONTEXT);
    return `${secret.slice(0, 6)}… in: ${around.replaceAll(secret, "<the secret>")}`;
  });
};
