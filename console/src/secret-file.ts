/**
 * Reads an end-to-end secret from a file that the user chose: a keyring, an `.env` file, or the
 * bare secret.
 */

export interface FoundSecret {
  readonly agentToken: string;
  readonly version: "1" | "2" | null;
}

const SECRET = /e2e_[0-9A-Za-z]{49}/g;

/**
 * The secret of `agentId`, or of the only agent in the file. Throws an Error with the fix if there
 * is none, or several.
 */
export const secretIn = (text: string, agentId: string): FoundSecret => {
  const kept = keyringEntry(text, agentId);
  if (kept !== null) return kept;
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

/** From a profile of the `blindrelay` command. */
const keyringEntry = (text: string, agentId: string): FoundSecret | null => {
  try {
    const { keyring } = JSON.parse(text);
    if (!Object.hasOwn(keyring, agentId)) return null;
    const { agent_token: agentToken, packet_version: version } = keyring[agentId];
    if (typeof agentToken !== "string") return null;
    return { agentToken, version: version === "2" ? "2" : "1" };
  } catch {
    return null;
  }
};
