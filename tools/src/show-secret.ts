import { printStatus } from "./output.ts";

/**
 * Shows a person at a terminal what only they may know and must write down now: the secret of a new
 * authenticator, recovery codes. Nothing else puts a secret on standard error.
 */
export const showSecret = (text: string): void => printStatus(text);
