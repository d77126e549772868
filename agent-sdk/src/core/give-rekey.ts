/**
 * How a build that has no `system.rekey` of its own gets it.
 *
 * [portable]
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import type { AgentSessions } from "@blindrelay/protocol/session";
import type { Log, StoragePort } from "../ports.ts";
import type { AgentCore } from "./agent-core.ts";
import { type BootCountResult, raiseBootCount } from "./bootcount.ts";
import { provisionSecrets, REPLACED, Rekeying, type StartSecrets, startSecrets } from "./rekey.ts";

type Boot = Extract<BootCountResult, { ok: true }>;

/** A start whose secret may be another one than the configuration's. */
export interface RekeyedStart {
  readonly secrets: StartSecrets;
  readonly boot: Boot;
  /** Called with the core before its program. `makeSessions` leaves the seed as it is. */
  readonly serve: (
    core: AgentCore,
    makeSessions: (agentToken: string, boot: Boot) => AgentSessions,
  ) => void;
}

/** What such a device is made of. */
export interface RekeyedParts {
  readonly storage: StoragePort;
  readonly suite: Suite;
  readonly log: Log;
  /** A push key, which has to prove a new secret; undefined: there is none. */
  readonly pushKey?: string | undefined;
  /** SHA-256 of a text, in lower-case hexadecimal. */
  readonly sha256: (text: string) => string;
}

/** Flash is short: a record takes 67 bytes for each. */
const SMALL_MAX_FROM = 8;

const raiseOrThrow = (parts: RekeyedParts, token: string, earlier: readonly string[]): Boot => {
  const boot = raiseBootCount(parts.storage, parts.suite, token, earlier);
  if (!boot.ok) throw new Error(boot.advice);
  return boot;
};

/**
 * Raises the boot count under the secret that the device has now. Throws if it must not start.
 */
export const startRekeyed = (
  parts: RekeyedParts,
  agentId: string,
  configured: string,
): RekeyedStart => {
  const storage = parts.storage;
  const suite = parts.suite;
  const log = parts.log;
  const pushKey = parts.pushKey;
  let secrets = startSecrets(storage, suite, configured, 0);
  if (secrets === null) {
    // Only what provisioned the device since can have given this secret a count.
    const boot = raiseOrThrow(parts, configured, []);
    if (boot.seed !== undefined) boot.seed.fill(0);
    provisionSecrets(storage, suite, configured);
    secrets = startSecrets(storage, suite, configured, 0) as StartSecrets;
  }
  const of = secrets;
  const boot = raiseOrThrow(parts, of.token, of.earlier);
  if (of.isReplaced) log("warn", REPLACED);
  return {
    secrets: of,
    boot: boot,
    serve: (core, makeSessions) => {
      const rekeying = new Rekeying({
        core: core,
        agentId: agentId,
        suite: suite,
        storage: storage,
        pushKey: pushKey === undefined ? null : pushKey,
        secrets: of,
        maxFrom: SMALL_MAX_FROM,
        now: () => 0,
        makeSessions: makeSessions,
        replaced: () => log("warn", REPLACED),
        sha256: parts.sha256,
      });
      if (of.trial !== null) rekeying.begin(of.trial, boot, of.trialMs);
    },
  };
};
