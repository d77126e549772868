/**
 * Checks an agent's configuration before anything is sent, so that a misplaced secret is reported
 * here instead of being refused by the relay (section 1).
 *
 * [portable]
 */
import { MAX_REPORT_LENGTH, MIN_FOREIGN_SECRET_LENGTH, tokenProblem } from "@blindrelay/protocol";
import type { Version } from "@blindrelay/protocol/crypto";
import { isForward } from "@blindrelay/protocol/crypto";
import { isReport } from "@blindrelay/protocol/wire";

export interface Credentials {
  readonly agentId: string;
  /** `agt_`: identifies this agent to the relay. */
  readonly relayToken: string;
  /** `e2e_`: the secret that its clients share with it; the relay never has it. */
  readonly agentToken: string;
  /** Accepts any agentToken of 32 characters or more. */
  readonly foreignAgentToken?: boolean;
  /** Sent at login; the relay accepts no other form (section 3). */
  readonly firmwareVersion?: string;
  readonly version?: Version;
  /** Whether there is what versions "3" and "4" need. */
  readonly forward?: unknown;
}

const ID_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_MAX_LENGTH = 64;

/** AGENT_ID_PATTERN, without a regular expression: boards get `{1,64}` wrong. */
const isAgentId = (text: string): boolean => {
  if (text.length < 1 || text.length > ID_MAX_LENGTH) return false;
  for (let i = 0; i < text.length; i++) {
    if (ID_CHARACTERS.indexOf(text.charAt(i)) < 0) return false;
  }
  return true;
};

/** What is wrong with a configuration, as a sentence without secrets; null if it is valid. */
export const credentialsProblem = (credentials: Credentials): string | null => {
  if (typeof credentials.agentId !== "string" || !isAgentId(credentials.agentId)) {
    return "agentId: 1 to 64 of A-Z, a-z, 0-9, - and _";
  }
  const firmware = credentials.firmwareVersion;
  if (firmware !== undefined && !isReport(firmware)) {
    return `firmwareVersion: 1 to ${MAX_REPORT_LENGTH} printable ASCII characters`;
  }
  if (isForward(credentials.version) && credentials.forward === undefined) {
    return `packet version "${credentials.version}" needs X25519: use "1" or "2" here`;
  }
  if (typeof credentials.relayToken !== "string") return "relayToken is missing";
  const relayProblem = tokenProblem(credentials.relayToken, "agent");
  if (relayProblem !== null) return `relayToken: ${relayProblem}`;
  if (typeof credentials.agentToken !== "string") return "agentToken is missing";
  const agentProblem = tokenProblem(credentials.agentToken, "e2e");
  if (agentProblem === null) return null;
  if (credentials.foreignAgentToken === true) {
    return credentials.agentToken.length >= MIN_FOREIGN_SECRET_LENGTH
      ? null
      : `agentToken: at least ${MIN_FOREIGN_SECRET_LENGTH} characters`;
  }
  return `agentToken: ${agentProblem}`;
};
