/** Settings of the commands: the environment first, then the profile (docs/commands.md). */
import { dirname, join } from "node:path";

import { AGENT_ID_PATTERN, readToken, TOKEN_NAMES } from "@blindrelay/protocol";
import { isVersion, type Version } from "@blindrelay/protocol/crypto";
import { relayUrl } from "@blindrelay/protocol/relay-url";
import { Failure } from "../failure.ts";
import { withLock } from "./lock.ts";
import { askPassphrase, PASSPHRASE_VARIABLE } from "./passphrase.ts";
import {
  type Environment,
  isSealed,
  type Profile,
  profilePath,
  readProfile,
  writeProfile,
} from "./profile.ts";

/** An agent's end-to-end secret and its packet suite. */
export interface Secret {
  readonly agentToken: string;
  readonly version: Version;
}

export class Settings {
  readonly profilePath: string;
  private readonly statePath: string;
  private readonly env: Environment;
  private profileRead: Profile | null | undefined;
  private passphraseGiven: string | undefined;

  constructor(env: Environment, profileName: string) {
    this.env = env;
    this.profilePath = profilePath(profileName, env);
    this.statePath = join(dirname(this.profilePath), "state", profileName);
  }

  get profile(): Profile | null {
    this.profileRead ??= readProfile(this.profilePath, () => this.passphrase());
    return this.profileRead;
  }

  /** Whether reading the profile would prompt the user. */
  get isLocked(): boolean {
    return this.given(PASSPHRASE_VARIABLE) === null && isSealed(this.profilePath);
  }

  /**
   * Reads the profile again, changes and writes it under a lock. `change`: null leaves it
   * unchanged. `under`: another passphrase from now on, or (null) none.
   */
  update(change: (profile: Profile | null) => Profile | null, under?: string | null): void {
    const path = this.profilePath;
    const before = isSealed(path) ? this.passphrase() : null;
    withLock(path, () => {
      const changed = change(readProfile(path, () => before ?? ""));
      if (changed === null) return;
      const passphrase = under === undefined ? before : under;
      writeProfile(path, changed, passphrase);
      this.profileRead = changed;
      this.passphraseGiven = passphrase ?? undefined;
    });
  }

  /** The relay's http(s) base, without a trailing slash. */
  httpUrl(): string {
    const url = this.given("BLINDRELAY_URL") ?? this.profile?.url;
    if (url !== undefined) return httpBase(url);
    const fix = "set BLINDRELAY_URL, or run: blindrelay login --url https://relay.example";
    throw new Failure("usage", `which relay? ${fix}`);
  }

  /** The relay's WebSocket address. */
  socketUrl(): string {
    return socketAddress(this.given("BLINDRELAY_URL") ?? this.httpUrl());
  }

  accountToken(): string {
    const token = this.given("BLINDRELAY_ACCOUNT_TOKEN") ?? this.profile?.account_token;
    if (token !== undefined) return token;
    throw new Failure(
      "usage",
      "which account? Set BLINDRELAY_ACCOUNT_TOKEN, or run: blindrelay login",
    );
  }

  /** The environment's secret, or the keyring's with its version. */
  secretOf(agentId: string): Secret {
    const secret = this.secretAtHand(agentId);
    if (secret !== null) return secret;
    throw new Failure(
      "usage",
      `no end-to-end secret for ${agentId}: set BLINDRELAY_AGENT_TOKEN, or use a profile that added it`,
    );
  }

  /** The same, or null if there is none. */
  secretAtHand(agentId: string): Secret | null {
    const given = this.given("BLINDRELAY_AGENT_TOKEN");
    if (given !== null) return { agentToken: given, version: this.version() };
    return this.keptSecretOf(agentId);
  }

  /** The keyring's secret for an agent, or null. */
  keptSecretOf(agentId: string): Secret | null {
    const key = this.profile?.keyring[agentId];
    if (key === undefined) return null;
    return { agentToken: key.agent_token, version: this.version(key.packet_version) };
  }

  /** The relay token of the agent that the environment names; null if it names none. */
  relayToken(): string | null {
    return this.given("BLINDRELAY_RELAY_TOKEN");
  }

  /** An agent's own folder: from the environment, else one beside the profile. */
  stateDirOf(agentId: string): string {
    return this.given("BLINDRELAY_STATE_DIR") ?? join(this.statePath, checkAgentId(agentId));
  }

  /** A variable that the command cannot do without. */
  demand(name: string, what: string): string {
    const value = this.given(name);
    if (value !== null) return value;
    throw new Failure("usage", `${name} is missing: set it to ${what}`);
  }

  /** A variable of the environment; an empty one counts as unset, because CI systems set those. */
  private given(name: string): string | null {
    return this.env[name] || null;
  }

  private passphrase(): string {
    this.passphraseGiven ??=
      this.given(PASSPHRASE_VARIABLE) ?? askPassphrase(`Passphrase of ${this.profilePath}`);
    return this.passphraseGiven;
  }

  private version(kept = "1"): Version {
    const version = this.given("BLINDRELAY_PACKET_VERSION") ?? kept;
    if (isVersion(version)) return version;
    throw new Failure("usage", `BLINDRELAY_PACKET_VERSION must be "1" or "2", not ${version}`);
  }
}

/** Length from which a text counts as a secret; a complete one is longer. */
const SECRET_LENGTH = 40;

/** Throws a Failure (usage), without the text, which may be a misplaced secret. */
const checkAddress = (text: string): string => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(http|ws)s?:$/.test(url.protocol)) {
    const form = "expected an http, https, ws or wss URL, such as https://relay.example";
    throw new Failure("usage", `the relay's address: ${form}`);
  }
  if (url.username !== "" || url.password !== "") {
    const text = "the relay's address must hold no user name and no password: login asks for them";
    throw new Failure("usage", text);
  }
  return text;
};

/** The WebSocket address for a relay's address. Throws a Failure (usage) for other texts. */
export const socketAddress = (text: string): string => relayUrl(checkAddress(text));

/** The http(s) base of a relay's address. Throws a Failure (usage) for other texts. */
export const httpBase = (text: string): string => {
  const url = new URL(socketAddress(text));
  url.protocol = url.protocol.replace("ws", "http");
  return url.href.replace(/\/wss$/, "");
};

/**
 * An agent's id, which is sent to the relay. Throws a Failure for other texts, including a secret
 * in its place.
 */
export const checkAgentId = (text: string): string => {
  const { kind } = readToken(text.trim());
  // An id may begin like a secret, and a mistyped secret is still a secret.
  if (kind !== null && text.length >= SECRET_LENGTH)
    throw new Failure("refused", `${TOKEN_NAMES[kind]} in place of an agent id`);
  if (new RegExp(AGENT_ID_PATTERN).test(text)) return text;
  throw new Failure("usage", `not an agent id (letters, digits, "_", "-", up to 64): ${text}`);
};
