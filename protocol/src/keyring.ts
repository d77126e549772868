/**
 * End-to-end secrets as one text, which carries them from one of their owner's machines to another:
 * a file, or what a QR code holds. The command `blindrelay` and the console write and read it.
 *
 * It is `{"url":"https://relay.example","keyring":{"pump-7":{"agent_token":"e2e_…",
 * "packet_version":"1"}}}`: what a profile says of secrets, so that a profile is such a text too.
 */
import { isVersion, type Version } from "./crypto/versions.ts";
import { isObject } from "./encoding/json.ts";
import { parseJson } from "./parse-json.ts";
import { AGENT_ID_PATTERN } from "./spec.ts";
import { tokenProblem } from "./tokens.ts";

/** An agent's end-to-end secret with the packet suite it goes with. */
export interface KeyringEntry {
  readonly agent_token: string;
  readonly packet_version: Version;
  /** The public half of the device's pinned key, base64url. */
  readonly device_key?: string;
}

export interface KeyringText {
  /** The relay's address; null if the text does not say. */
  readonly url: string | null;
  /** By agent_id; at least one. */
  readonly keys: ReadonlyMap<string, KeyringEntry>;
}

/** In characters: far above a keyring of thousands of agents. */
export const MAX_KEYRING_LENGTH = 4_000_000;

/** 32 bytes in base64url. */
const DEVICE_KEY = /^[A-Za-z0-9_-]{43}$/;
const VARIABLE = /^(?:export )?BLINDRELAY_(\w+)=(["']?)(.*)\2\r?$/gm;

type Members = Readonly<Record<string, unknown>>;

/** Throws an Error that names what is wrong, and not the secret. */
const checkEntry = (agentId: string, entry: unknown): KeyringEntry => {
  if (!new RegExp(AGENT_ID_PATTERN).test(agentId)) {
    throw new Error(`${JSON.stringify(agentId.slice(0, 64))} is no agent id`);
  }
  const {
    agent_token,
    packet_version = "1",
    device_key,
  } = isObject(entry) ? entry : ({} as Members);
  const problem = tokenProblem(typeof agent_token === "string" ? agent_token : "", "e2e");
  if (typeof agent_token !== "string" || problem !== null)
    throw new Error(`${agentId}: ${problem}`);
  if (!isVersion(packet_version)) {
    throw new Error(`${agentId}: a packet version is "1", "2", "3" or "4"`);
  }
  if (device_key === undefined) return { agent_token, packet_version };
  if (typeof device_key === "string" && DEVICE_KEY.test(device_key)) {
    return { agent_token, packet_version, device_key };
  }
  throw new Error(`${agentId}: a device key has 43 characters of base64url`);
};

const read = (url: unknown, entries: Members): KeyringText => {
  const ids = Object.keys(entries).filter((id) => {
    const entry = entries[id];
    // A profile notes the relay of a secret that is not for its own.
    return !isObject(entry) || entry.relay === undefined || entry.relay === url;
  });
  if (ids.length === 0) throw new Error("there is no end-to-end secret in it");
  return {
    url: typeof url === "string" ? url : null,
    keys: new Map(ids.map((id) => [id, checkEntry(id, entries[id])])),
  };
};

/** What `agent export` prints by default: lines for a shell. */
const readVariables = (text: string): KeyringText => {
  const found = new Map<string, string>();
  for (const [, name = "", , value = ""] of text.matchAll(VARIABLE)) found.set(name, value);
  const agentId = found.get("AGENT_ID");
  if (agentId === undefined) throw new Error("this is no entry of a keyring");
  if (!found.has("AGENT_TOKEN")) throw new Error("there is no end-to-end secret in it");
  const entry = {
    agent_token: found.get("AGENT_TOKEN"),
    packet_version: found.get("PACKET_VERSION"),
    device_key: found.get("DEVICE_KEY"),
  };
  return read(found.get("URL"), { [agentId]: entry });
};

/** One text for these secrets, on one line. `url`: the relay's address. */
export const encodeKeyring = (url: string, keys: ReadonlyMap<string, KeyringEntry>): string =>
  JSON.stringify({ url, keyring: Object.fromEntries(keys) });

/**
 * Reads such a text, a profile without passphrase, or what `agent export` prints (as lines or with
 * --json). Throws an Error with the reason, which quotes no secret.
 */
export const decodeKeyring = (text: string): KeyringText => {
  if (text.length > MAX_KEYRING_LENGTH) throw new Error("it is too large to be a keyring");
  if (!/^\ufeff?\s*[{[]/.test(text)) return readVariables(text);
  const value = parseJson(text);
  if (!isObject(value)) throw new Error("this is no entry of a keyring");
  const { url, relay_url, keyring, sealed, agent_id } = value;
  if (sealed !== undefined) {
    throw new Error(
      "it is encrypted with a passphrase: `blindrelay agent export AGENT --format keyring` prints an entry of it",
    );
  }
  if (isObject(keyring)) return read(url, keyring);
  if (typeof agent_id !== "string") throw new Error("this is no entry of a keyring");
  return read(relay_url, { [agent_id]: value });
};
