import { printStatus } from "./output.ts";

/**
 * Shows the user at a terminal a secret that only they may know and must write down now: that of a
 * new authenticator, or recovery codes. Nothing else writes a secret to standard error.
 */
export const showSecret = (text: string): void => printStatus(text);
