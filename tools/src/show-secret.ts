import { printStatus } from "./output.ts";

/**
 * Shows the user at a terminal what only they may know and must write down now: the secret of a new
 * authenticator, recovery codes. Nothing else writes a secret to standard error.
 */
export const showSecret = (text: string): void => printStatus(text);
