/**
 * What programs of an account show the relay: its token, or an access key.
 *
 * [portable]
 */
import { readToken, tokenProblem } from "./tokens.ts";

/** Why a text is neither; null if it is one of them. */
export const accountTokenProblem = (text: string): string | null =>
  tokenProblem(text, readToken(text).kind === "key" ? "key" : "account");
