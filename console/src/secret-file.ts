/**
 * Reads an end-to-end secret from a file that the user chose: a keyring, an `.env` file, or the
 * bare secret.
 */
import { parseJson } from "@blindrelay/protocol/parse-json";

export interface FoundSecret {
  readonly agentToken: string;
  readonly version: "1" | "2" | null;
}

/** Far above a keyring of thousands of agents. */
const MAX_FILE_BYTES = 4_000_000;

/** Rejects, with a sentence, for a file that can be no keyring. */
export const textOf = async (file: File): Promise<string> => {
  if (file.size > MAX_FILE_BYTES) throw new Error("The file is too large to be a keyring.");
  return file.text();
};

const SECRET = /e2e_[0-9A-Za-z]{49}/g;

/**
 * The secret of `agentId`, or of the only agent in the file. Throws an Error with the fix if there
 * is none, or several.
 */
export const secretIn = (text: string, agentId: string): FoundSecret => {
  const kept = keyringIn(text).get(agentId);
  if (kept !== undefined) return kept;
  const found = [...new Set(text.match(SECRET) ?? [])];
  if (found.length > 1) {
    throw new Error(`The file has ${found.length} secrets and none is named ${agentId}: copy one.`);
  }
  const [agentToken] = found;
  if (agentToken === undefined) {
    throw new Error(
      "There is no e2e_ secret in the file. A keyring that is encrypted with a passphrase cannot be read here: copy the secret instead.",
    );
  }
  const version = /packet_version\W+([12])\b/i.exec(text)?.[1];
  return { agentToken, version: (version as "1" | "2" | undefined) ?? null };
};

/** All secrets of a profile of the `blindrelay` command; empty for any other text. */
export const keyringIn = (text: string): Map<string, FoundSecret> => {
  const found = new Map<string, FoundSecret>();
  let keyring: unknown;
  try {
    ({ keyring } = parseJson(text) as { keyring?: unknown });
  } catch {
    return found;
  }
  if (typeof keyring !== "object" || keyring === null) return found;
  for (const [agentId, entry] of Object.entries(keyring as { [id: string]: unknown })) {
    const { agent_token: agentToken, packet_version: version } = (entry ?? {}) as {
      readonly agent_token?: unknown;
      readonly packet_version?: unknown;
    };
    if (typeof agentToken !== "string") continue;
    found.set(agentId, { agentToken, version: version === "2" ? "2" : "1" });
  }
  return found;
};
