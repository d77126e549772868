/**
 * A new agent_token over the air (section 2b, "Changing the secret over the air"). It is kept
 * beside the old one as a trial, and becomes the device's secret when a client has stored a session
 * under it, before that client hears anything.
 *
 *   state    event                    next     the device answers to
 *   steady   system.rekey             trial    the new secret, then the old one
 *   trial    first session under new  steady   the new one; the old one is erased
 *   trial    10 minutes               steady   the old one; without a clock, since the last start
 *   trial    start                    trial    both
 *   trial    start, a second time     steady   the old one
 *
 * One record has everything (record.ts), so that whatever a power cut leaves is one of these
 * states. The boot slots may still name the secret before: a start accepts its hash, and replaces
 * it.
 *
 * [portable]
 */
import { tokenProblem } from "@blindrelay/protocol";
import type { HmacKey, Suite } from "@blindrelay/protocol/crypto";
import {
  deriveSignatureKey,
  equalTexts,
  extractPrk,
  isObject,
  own,
  rekeyProof,
} from "@blindrelay/protocol/crypto";
import type { AgentSessions } from "@blindrelay/protocol/session";
import type { StoragePort } from "../ports.ts";
import type { AgentCore } from "./agent-core.ts";
import { type BootCountResult, hashToken, raiseBootCount } from "./bootcount.ts";
import { demandNewSerial, keepSerial, lastSerial, provenSerial } from "./push-serial.ts";
import { isWrittenTwice, readNewer, writeNext } from "./record.ts";
import { SecretTrial } from "./secret-trial.ts";

export const REKEY_METHOD = "system.rekey";

/** A warning of a start, and of the moment when it happens. */
export const REPLACED =
  "the agent_token was replaced over the air: the one that this start was given is not used any more";

/** Two files. */
const SECRETS = "secret";
const TRIAL_MS = 600_000;
const MAX_ID = 64;
/** Secrets that a device was rekeyed from; the oldest is forgotten. */
const MAX_FROM = 64;

interface RekeyTrial {
  readonly id: string;
  readonly token: string;
  /** Since the trial began. */
  readonly starts: number;
  /** When it began, by RekeyPort.now. */
  readonly begun: number;
}

interface SecretState {
  readonly n: number;
  /** "": the one of the configuration. */
  readonly token: string;
  /** Hashes of those before it. */
  readonly earlier: readonly string[];
  readonly trial: RekeyTrial | null;
}

const CONFIGURED: SecretState = { n: 0, token: "", earlier: [], trial: null };

const readSecrets = (storage: StoragePort): SecretState => readNewer(storage, SECRETS, CONFIGURED);

/** Twice, so that no file keeps the secrets of the record before. */
const writeBoth = (storage: StoragePort, before: SecretState, change: object): void => {
  const state = writeNext(storage, SECRETS, before, change);
  writeNext(storage, SECRETS, state, {});
};

/** The secrets of one start. */
export interface StartSecrets {
  readonly token: string;
  /** Hashes of the secrets before it, which boot slots may name. */
  readonly earlier: readonly string[];
  /** The secret on trial; null: none is. */
  readonly trial: string | null;
  /** What is left of its time, ms. */
  readonly trialMs: number;
  /** The configuration has an older secret than the storage. */
  readonly isReplaced: boolean;
  /** Hash of the configuration's. */
  readonly configured: string;
}

/**
 * Call it once for every start, before the boot count is raised. Null if the configured secret is
 * neither this storage's nor one that it was rekeyed from. `now`: as in RekeyPort. Throws if the
 * storage fails.
 */
export const startSecrets = (
  storage: StoragePort,
  suite: Suite,
  configured: string,
  now: number,
): StartSecrets | null => {
  const state = readSecrets(storage);
  const hash = hashToken(suite, configured);
  const isReplaced = state.token !== "" && !equalTexts(state.token, configured);
  if (isReplaced && state.earlier.indexOf(hash) < 0) return null;
  let trial = state.trial;
  const trialMs = trial === null ? 0 : TRIAL_MS - Math.max(0, now - trial.begun);
  if (trial !== null && trial.starts === 0 && trialMs > 0) {
    trial = Object.assign({}, trial, { starts: 1 });
    writeNext(storage, SECRETS, state, { trial: trial });
  } else if (trial !== null) {
    trial = null;
    writeBoth(storage, state, { trial: null });
  } else if (state.n > 0 && !isWrittenTwice(storage, SECRETS, state)) {
    // A cut came between the two: the other file may have a secret that is no longer used.
    writeNext(storage, SECRETS, state, {});
  }
  return {
    token: state.token === "" ? configured : state.token,
    earlier: state.earlier,
    trial: trial === null ? null : trial.token,
    trialMs: trialMs,
    isReplaced: isReplaced,
    configured: hash,
  };
};

/**
 * The storage is to be provisioned for another secret; call it before the boot count is. The hashes
 * of those before it stay. False if it had that secret before. Throws if the storage fails.
 */
export const provisionSecrets = (
  storage: StoragePort,
  suite: Suite,
  agentToken: string,
): boolean => {
  const state = readSecrets(storage);
  if (state.n === 0) return true;
  if (state.earlier.indexOf(hashToken(suite, agentToken)) >= 0) return false;
  if (state.token !== agentToken) writeBoth(storage, state, { token: agentToken, trial: null });
  return true;
};

/** What a device gives to be rekeyed. */
export interface RekeyPort {
  readonly core: AgentCore;
  readonly agentId: string;
  readonly suite: Suite;
  readonly storage: StoragePort;
  /** The push key, which has to prove a new secret; null: there is none. */
  readonly pushKey: string | null;
  readonly secrets: StartSecrets;
  /** In place of MAX_FROM. */
  readonly maxFrom?: number;
  /** Milliseconds by a clock that goes on without power; 0: there is none. */
  now(): number;
  /** The sessions of a secret, for a count that was raised. */
  makeSessions(agentToken: string, boot: Extract<BootCountResult, { ok: true }>): AgentSessions;
  /** The configuration's secret is no longer the device's. */
  replaced(): void;
  /** SHA-256 of a text's UTF-8, in lower-case hexadecimal. */
  sha256(text: string): string;
}

export class Rekeying {
  // `declare`, because Espruino cannot parse a field without a value; this erases to nothing.
  declare private readonly port: RekeyPort;
  declare private token: string;
  declare private earlier: readonly string[];
  declare private trial: SecretTrial | null;
  /** A record may or may not have been written: what is stored counts at the next start only. */
  declare private isUnsure: boolean;

  constructor(port: RekeyPort) {
    this.port = port;
    this.token = port.secrets.token;
    this.earlier = port.secrets.earlier;
    this.trial = null;
    this.isUnsure = false;
    port.core.dispatcher.add(REKEY_METHOD, (params) => this.answer(params));
  }

  /**
   * Answers to a secret on trial, beside the present one, for so many milliseconds. `boot`: of this
   * start, or raised since.
   */
  begin(agentToken: string, boot: Extract<BootCountResult, { ok: true }>, ms: number): void {
    const port = this.port;
    const core = port.core;
    const before = core.sessions as AgentSessions;
    const trial = new SecretTrial(before, port.makeSessions(agentToken, boot), () =>
      this.confirm(agentToken),
    );
    this.trial = trial;
    core.sessions = trial;
    core.signatureKeys = [this.signatureKey(agentToken), this.signatureKey(this.token)];
    core.agent.after(ms, () => this.drop(trial));
  }

  private signatureKey(agentToken: string): HmacKey {
    const suite = this.port.suite;
    return deriveSignatureKey(suite, extractPrk(suite, this.port.agentId, agentToken));
  }

  private answer(params: unknown): object {
    const storage = this.port.storage;
    if (this.isUnsure) throw new Error("a secret could not be stored: restart the device");
    const asked = isObject(params) ? params : {};
    const state = readSecrets(storage);
    const trial = state.trial;
    const secret = own(asked, "secret");
    const id = own(asked, "id");
    if (secret === undefined && id === undefined) {
      return { serial: lastSerial(storage), trial: trial === null ? null : trial.id };
    }
    if (typeof id !== "string" || id.length < 1 || id.length > MAX_ID) throw new Error("no id");
    if (typeof secret !== "string") throw new Error("no secret");
    const problem = tokenProblem(secret, "e2e");
    if (problem !== null) throw new Error(problem);
    if (trial !== null) {
      if (trial.id !== id || trial.token !== secret) throw new Error("another secret is on trial");
    } else this.accept(state, asked, secret, id);
    return { id: id, expires_in: TRIAL_MS / 1000 };
  }

  private accept(state: SecretState, params: object, secret: string, id: string): void {
    const port = this.port;
    const suite = port.suite;
    const storage = port.storage;
    const hash = hashToken(suite, secret);
    if (equalTexts(secret, this.token) || this.earlier.indexOf(hash) >= 0) {
      throw new Error("this device had that secret: make a new one");
    }
    const key = port.pushKey;
    if (key !== null) {
      const proofOf = (n: number): string =>
        rekeyProof(suite, key, port.agentId, n, port.sha256(secret));
      const serial = provenSerial(params, proofOf, "agent rekey");
      demandNewSerial(serial, lastSerial(storage));
      keepSerial(storage, serial);
    }
    const boot = raiseBootCount(storage, suite, this.token, this.earlier);
    if (!boot.ok) throw new Error(boot.advice);
    const trial: RekeyTrial = { id: id, token: secret, starts: 0, begun: port.now() };
    this.isUnsure = true;
    try {
      // With the secret that it may replace: provisioned for another one, the device drops it.
      writeNext(storage, SECRETS, state, { token: this.token, trial: trial });
      this.begin(secret, boot, TRIAL_MS);
    } finally {
      if (boot.seed !== undefined) boot.seed.fill(0);
    }
    this.isUnsure = false;
  }

  /** Durable on return, if true. */
  private confirm(agentToken: string): boolean {
    const trial = this.trial as SecretTrial;
    const port = this.port;
    const core = port.core;
    const storage = port.storage;
    const suite = port.suite;
    const configured = port.secrets.configured;
    const hashes = this.earlier.concat([hashToken(suite, this.token)]);
    // The configuration's is kept: the next start will show it again.
    const others = hashes.filter((hash) => hash !== configured);
    const most = port.maxFrom === undefined ? MAX_FROM : port.maxFrom;
    while (others.length >= most) others.shift();
    const earlier = [configured].concat(others);
    try {
      const state = readSecrets(storage);
      writeBoth(storage, state, { token: agentToken, earlier: earlier, trial: null });
    } catch {
      // Nothing was said under it, so the medium decides at the next start.
      this.isUnsure = true;
      this.stop(trial);
      return false;
    }
    this.token = agentToken;
    this.earlier = earlier;
    this.trial = null;
    core.adopt(trial.next);
    trial.before.end();
    core.signatureKeys = [this.signatureKey(agentToken)];
    port.replaced();
    return true;
  }

  /** The time of a trial is over. */
  private drop(trial: SecretTrial): void {
    if (this.trial !== trial) return;
    this.stop(trial);
    try {
      writeNext(this.port.storage, SECRETS, readSecrets(this.port.storage), { trial: null });
    } catch {
      // The second start from now on drops it.
      this.isUnsure = true;
    }
  }

  private stop(trial: SecretTrial): void {
    this.trial = null;
    this.port.core.sessions = trial.before;
    this.port.core.signatureKeys = [this.signatureKey(this.token)];
    trial.next.end();
  }
}
