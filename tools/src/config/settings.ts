/**
 * Settings of the commands: an explicit profile first, then the environment, then the default
 * profile (docs/commands.md). A profile's account token goes to that profile's relay only.
 */
import { dirname, join } from "node:path";

import { AGENT_ID_PATTERN, readToken, TOKEN_NAMES } from "@blindrelay/protocol";
import { Failure, givenText } from "@blindrelay/protocol/command-line";
import { isVersion, type Version } from "@blindrelay/protocol/crypto";
import { didYouMean } from "@blindrelay/protocol/did-you-mean";
import { withLock } from "@blindrelay/protocol/file-lock";
import { relayUrl } from "@blindrelay/protocol/relay-url";
import { checkToken } from "../base/check-token.ts";
import { askPassphrase, PASSPHRASE_VARIABLE } from "./passphrase.ts";
import {
  demandNothingLost,
  type Environment,
  isSealed,
  type Profile,
  profilePath,
  readProfile,
  renewCopies,
  writeProfile,
} from "./profile.ts";

/** An agent's end-to-end secret and its packet suite. */
export interface Secret {
  readonly agentToken: string;
  readonly version: Version;
  /** The public half of the device's pinned key, base64url; null: none is known. */
  readonly deviceKey: string | null;
}

export class Settings {
  private readonly env: Environment;
  private readonly profileName: string;
  /** Whether `--profile` named it, which then takes precedence over the environment. */
  private readonly isExplicit: boolean;
  private profileRead: Profile | null | undefined;
  private passphraseGiven: string | undefined;

  /** Throws a Failure (usage) for an invalid profile name. */
  constructor(env: Environment, profileName: string, isExplicit = false) {
    this.env = env;
    this.profileName = profileName;
    this.isExplicit = isExplicit;
    profilePath(profileName, env);
  }

  /** Throws a Failure (usage) if nothing says where profiles are. */
  get profilePath(): string {
    const path = profilePath(this.profileName, this.env);
    if (path !== null) return path;
    throw new Failure("usage", "there is no home folder: set HOME, or BLINDRELAY_CONFIG_DIR");
  }

  get profile(): Profile | null {
    if (profilePath(this.profileName, this.env) === null) return null;
    this.profileRead ??= readProfile(this.profilePath, () => this.passphrase());
    return this.profileRead;
  }

  /** The profile. Throws a Failure (usage) if there is none. */
  demandProfile(): Profile {
    if (this.profile !== null) return this.profile;
    throw new Failure("usage", `there is no profile ${this.profilePath}: blindrelay login`);
  }

  /** Whether reading the profile would prompt the user. */
  get isLocked(): boolean {
    return this.given(PASSPHRASE_VARIABLE) === null && isSealed(this.profilePath);
  }

  /**
   * Reads the profile again, changes and writes it under a lock. `change`: null leaves it
   * unchanged. `under`: another passphrase from now on, or (null) none. `renews`: earlier copies
   * hold what is to be forgotten. Throws a Failure (usage); then nothing was changed.
   */
  update(
    change: (profile: Profile | null) => Profile | null,
    under?: string | null,
    renews = false,
  ): void {
    const path = this.profilePath;
    const given = isSealed(path) ? this.passphrase() : null;
    withLock(path, () => {
      // Somebody may have removed it while a person typed it.
      const before = isSealed(path) ? given : null;
      const changed = change(readProfile(path, () => before ?? ""));
      if (changed === null) return;
      const passphrase = under === undefined ? before : under;
      const isRenewed = passphrase !== before || renews;
      const known = new Set([before, passphrase].filter((one) => one !== null));
      if (isRenewed) demandNothingLost(path, changed, known);
      writeProfile(path, changed, passphrase);
      if (isRenewed) renewCopies(path);
      this.profileRead = changed;
      this.passphraseGiven = passphrase ?? undefined;
    });
  }

  /** Removes the account token from the profile and from its copies. */
  forgetToken(): void {
    const forget = (profile: Profile | null): Profile | null => {
      if (profile === null) return null;
      const { account_token: _, ...others } = profile;
      return others;
    };
    this.update(forget, undefined, true);
  }

  /** The profile that `--profile` named, or null. Throws a Failure if it does not exist. */
  private get explicit(): Profile | null {
    if (!this.isExplicit) return null;
    if (this.profile !== null) return this.profile;
    const fix = `blindrelay --profile ${this.profileName} login --url https://relay.example`;
    throw new Failure("usage", `there is no profile ${this.profilePath}; make it: ${fix}`);
  }

  /** The relay's http(s) base, without a trailing slash. */
  httpUrl(): string {
    const url = this.explicit?.url ?? this.given("BLINDRELAY_URL") ?? this.profile?.url;
    if (url !== undefined) return httpBase(url);
    const fix = "set BLINDRELAY_URL, or run: blindrelay login --url https://relay.example";
    throw new Failure("usage", `which relay? ${fix}`);
  }

  /** The same for a login, for which the profile may have to be made. */
  loginUrl(): string {
    return this.isExplicit && this.profile === null
      ? new Settings(this.env, this.profileName).httpUrl()
      : this.httpUrl();
  }

  socketUrl(): string {
    if (this.explicit !== null) return socketAddress(this.explicit.url);
    return socketAddress(this.given("BLINDRELAY_URL") ?? this.httpUrl());
  }

  /** Throws a Failure (usage) if there is none, or the profile's is for another relay. */
  accountToken(): string {
    const given = this.explicit === null ? this.given("BLINDRELAY_ACCOUNT_TOKEN") : null;
    if (given !== null) return given;
    const { profile } = this;
    if (profile?.account_token === undefined) {
      // An explicit profile takes its token from nowhere else.
      const fix = this.isExplicit
        ? `run: blindrelay --profile ${this.profileName} login`
        : "set BLINDRELAY_ACCOUNT_TOKEN, or run: blindrelay login";
      throw new Failure("usage", `which account? ${fix}`);
    }
    const [relay, home] = [this.httpUrl(), httpBase(profile.url)];
    if (relay === home) return profile.account_token;
    const fix = "unset BLINDRELAY_URL, or set BLINDRELAY_ACCOUNT_TOKEN too";
    throw new Failure(
      "usage",
      `the profile's account token is for ${home}, and BLINDRELAY_URL is ${relay}: ${fix}`,
    );
  }

  /** The profile's relay; null: it is the one that commands talk to. */
  otherHome(): string | null {
    const home = this.profile === null ? null : httpBase(this.profile.url);
    return home === null || isSameRelay(home, this.httpUrl()) ? null : home;
  }

  /** The account's name, as far as this machine knows it: "" for a token of the environment. */
  accountName(): string {
    const isGiven = this.explicit === null && this.given("BLINDRELAY_ACCOUNT_TOKEN") !== null;
    return isGiven ? "" : (this.profile?.username ?? "");
  }

  /** Where the account token comes from, for a person. */
  get accountSource(): string {
    const isGiven = this.explicit === null && this.given("BLINDRELAY_ACCOUNT_TOKEN") !== null;
    return isGiven ? "BLINDRELAY_ACCOUNT_TOKEN" : this.profilePath;
  }

  /** The environment's secret, or the keyring's, which an explicit profile puts first. */
  secretOf(agentId: string): Secret {
    const secret = this.secretAtHand(agentId);
    if (secret !== null) return secret;
    this.httpUrl(); // who has not logged in is asked for the relay first
    throw new Failure(
      "usage",
      `no end-to-end secret for ${agentId}${this.similarAgent(agentId)}: set BLINDRELAY_AGENT_TOKEN, or use a profile that added it (blindrelay agent list shows your agents)`,
    );
  }

  /** The same for an id that a person typed, checked as the id is. */
  checkedSecretOf(agentId: string): Secret {
    const secret = this.secretOf(checkAgentId(agentId));
    checkToken(secret.agentToken, "e2e", "agent token");
    return secret;
  }

  /** ` (did you mean "pump-7"?)` for a mistyped agent of the keyring, or "". */
  similarAgent(agentId: string): string {
    const ids = Object.keys(this.profile?.keyring ?? {});
    return ids.includes(agentId) ? "" : didYouMean(agentId, ids);
  }

  /** `secretOf`, or null if there is none. */
  secretAtHand(agentId: string): Secret | null {
    const kept = this.isExplicit ? this.keptSecretOf(agentId) : null;
    if (kept !== null) return kept;
    const given = this.givenFor(agentId, "BLINDRELAY_AGENT_TOKEN");
    if (given !== null) {
      const deviceKey = this.givenFor(agentId, DEVICE_KEY_VARIABLE);
      return { agentToken: given, version: this.version(agentId), deviceKey };
    }
    return this.keptSecretOf(agentId);
  }

  /** The keyring's secret for an agent, or null. */
  keptSecretOf(agentId: string): Secret | null {
    const key = this.profile?.keyring[agentId];
    if (key === undefined) return null;
    const version = this.isExplicit
      ? key.packet_version
      : this.version(agentId, key.packet_version);
    const given = this.isExplicit ? null : this.givenFor(agentId, DEVICE_KEY_VARIABLE);
    return {
      agentToken: key.agent_token,
      version: checkVersion(version, "the keyring"),
      deviceKey: given ?? key.device_key ?? null,
    };
  }

  /** The secret that is to replace the keyring's over the air, if it was sent; null: none is. */
  sentSecretOf(agentId: string): (Secret & { readonly id: string; readonly at: string }) | null {
    const key = this.profile?.pending?.[agentId];
    const kept = this.keptSecretOf(agentId);
    if (key?.rekey === undefined || kept === null) return null;
    return { ...kept, ...key.rekey, agentToken: key.agent_token };
  }

  /** The relay token of an agent, from the environment; null if it has none for it. */
  relayToken(agentId: string): string | null {
    return this.givenFor(agentId, "BLINDRELAY_RELAY_TOKEN");
  }

  /** The private half of the device's key, for whoever runs the agent; null if there is none. */
  deviceSecret(agentId: string): string | null {
    return this.givenFor(agentId, "BLINDRELAY_DEVICE_SECRET");
  }

  /** An agent's own folder: from the environment, else one beside the profile. */
  stateDirOf(agentId: string): string {
    const given = this.given("BLINDRELAY_STATE_DIR");
    if (given !== null) return given;
    return join(dirname(this.profilePath), "state", this.profileName, checkAgentId(agentId));
  }

  /** Where maps of flashed and pushed programs are kept; null: there is no home folder. */
  get buildsDir(): string | null {
    const path = profilePath(this.profileName, this.env);
    return path === null ? null : join(dirname(path), "builds", this.profileName);
  }

  /** A variable that the command cannot do without. */
  demand(name: string, what: string): string {
    const value = this.given(name);
    if (value !== null) return value;
    throw new Failure("usage", `${name} is missing: set it to ${what}`);
  }

  private given(name: string): string | null {
    return givenText(this.env[name]);
  }

  /** A variable about one agent: null if BLINDRELAY_AGENT_ID says that it is about another. */
  private givenFor(agentId: string, name: string): string | null {
    const named = this.given("BLINDRELAY_AGENT_ID");
    return named === null || named === agentId ? this.given(name) : null;
  }

  private passphrase(): string {
    this.passphraseGiven ??=
      this.env[PASSPHRASE_VARIABLE] || askPassphrase(`Passphrase of ${this.profilePath}`);
    return this.passphraseGiven;
  }

  private version(agentId: string, kept = "1"): Version {
    const name = "BLINDRELAY_PACKET_VERSION";
    return checkVersion(this.givenFor(agentId, name) ?? kept, name);
  }
}

/** Throws a Failure (usage) for other texts. `where`: what contains it. */
export const checkVersion = (version: string, where: string): Version => {
  if (isVersion(version)) return version;
  throw new Failure("usage", `${where}: a packet version is "1", "2", "3" or "4", not ${version}`);
};

const DEVICE_KEY_VARIABLE = "BLINDRELAY_DEVICE_KEY";

/** Length from which a text counts as a secret; a complete one is longer. */
const SECRET_LENGTH = 40;

/** A host with a port, a dot or the name localhost; a secret is none of these. */
const HOST =
  /^(?:localhost|\[[0-9a-f:]+\]|[a-z0-9-]+(?=:\d)|[a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d{1,5})?(?=\/|$)/i;
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d+){3})(?![a-z0-9.-])/i;

/** With the scheme that was left out: TLS, except on this machine. */
const withScheme = (text: string): string => {
  if (!HOST.test(text)) return text;
  return `${LOOPBACK.test(text) ? "http" : "https"}://${text}`;
};

/** What a browser shows of a relay: the console, and the pages about its API. */
const PAGES = /\/(?:console|api\/v1)(?:\/.*)?$/;

/**
 * The address, as a person types or copies it. Throws a Failure (usage), without the text, which
 * may be a misplaced secret.
 */
const checkAddress = (given: string): string => {
  const text = withScheme(given.trim());
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(http|ws)s?:$/.test(url.protocol)) {
    const form = "expected an http, https, ws or wss URL, such as https://relay.example";
    throw new Failure("usage", `the relay's address: ${form}`);
  }
  if (url.username !== "" || url.password !== "") {
    const text = "the relay's address must hold no user name and no password: login asks for them";
    throw new Failure("usage", text);
  }
  const path = url.pathname.replace(PAGES, "");
  if (path === url.pathname) return text;
  return new URL(path === "" ? "/" : path, url.origin).href;
};

/** The WebSocket address for a relay's address. Throws a Failure (usage) for other texts. */
export const socketAddress = (text: string): string => relayUrl(checkAddress(text));

/** The http(s) base of a relay's address. Throws a Failure (usage) for other texts. */
export const httpBase = (text: string): string => {
  const url = new URL(socketAddress(text));
  url.protocol = url.protocol.replace("ws", "http");
  return url.href.replace(/\/wss$/, "");
};

/** This machine's own names, each of which leads to what listens at the port. */
const OWN_NAME = /^(https?:\/\/)(?:127\.0\.0\.1|\[::1\])(?=[:/]|$)/;

/** Of http(s) bases. */
export const isSameRelay = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((url) => url.replace(OWN_NAME, "$1localhost"));
  return a === b;
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
