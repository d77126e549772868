/**
 * Replaces core/credentials.ts on a board: checks only which secret is where. `blindrelay
 * provision` has checked more, including checksums, and read back what it wrote; the base-62
 * arithmetic to repeat that would take 2 KB of flash.
 *
 * [portable]
 */
import type { Credentials } from "../core/credentials.ts";

/** A prefix and 49 digits. */
const isSecret = (text: string, prefix: string): boolean =>
  text.substring(0, prefix.length) === prefix && text.length === prefix.length + 49;

/** What is wrong with a configuration, as a sentence without secrets; null if it is valid. */
export const credentialsProblem = (credentials: Credentials): string | null => {
  if (credentials.agentId === "") return "agent_id is empty";
  if (!isSecret(credentials.relayToken, "agt_")) return "relay_token is no agt_ token";
  return isSecret(credentials.agentToken, "e2e_") ? null : "agent_token is no e2e_ secret";
};
