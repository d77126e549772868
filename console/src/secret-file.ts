/**
 * Reads an end-to-end secret from a text that the user chose: a keyring or an entry of one, an
 * `.env` file, or the bare secret.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import { decodeKeyring, encodeKeyring, MAX_KEYRING_LENGTH } from "@blindrelay/protocol/keyring";
import { decodeText } from "@blindrelay/protocol/parse-json";
import { restBase } from "@blindrelay/protocol/relay-url";

export interface FoundSecret {
  readonly agentToken: string;
  readonly version: Version | null;
  /** The public half of the device's pinned key, base64url. */
  readonly deviceKey?: string | undefined;
}

/** Rejects, with a sentence, for a file that can be no `what`, or is not UTF-8. */
export const textOf = async (file: File, what: string): Promise<string> => {
  if (file.size > MAX_KEYRING_LENGTH) throw new Error(`The file is too large to be ${what}.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return decodeText(bytes);
  } catch (error) {
    throw new Error(`The file is ${(error as Error).message}.`);
  }
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
  const version = /packet_version\W+([1-4])\b/i.exec(text)?.[1];
  return { agentToken, version: (version as Version | undefined) ?? null };
};

/** All secrets of a keyring; empty for any other text. */
export const keyringIn = (text: string): Map<string, FoundSecret> => {
  try {
    return readKeyring(text);
  } catch {
    return new Map();
  }
};

/** The same. Throws an Error that says why a text is none. */
export const readKeyring = (text: string): Map<string, FoundSecret> =>
  new Map(
    [...decodeKeyring(text).keys].map(([agentId, key]) => [
      agentId,
      { agentToken: key.agent_token, version: key.packet_version, deviceKey: key.device_key },
    ]),
  );

/** The address of the relay that served this page. */
export const pageRelay = (): string => restBase(new URL(".", document.baseURI).href);

/** What `blindrelay agent import` and another console read. */
export const entryOf = (agentId: string, secret: FoundSecret): string => {
  const { agentToken, version, deviceKey } = secret;
  const pinned = deviceKey === undefined ? {} : { device_key: deviceKey };
  const entry = { agent_token: agentToken, packet_version: version ?? "1", ...pinned };
  return encodeKeyring(pageRelay(), new Map([[agentId, entry]]));
};
