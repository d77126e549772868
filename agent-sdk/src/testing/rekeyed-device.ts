/** A device whose secret may be replaced over the air, at the relay's end of a world in memory. */
import { createHash } from "node:crypto";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type BootCountResult, raiseBootCount } from "../core/bootcount.ts";
import { Rekeying, startSecrets } from "../core/rekey.ts";
import type { StoragePort } from "../ports.ts";
import { AGENT_ID, AGENT_TOKEN, Client, World } from "./world.ts";

const suite = nodeSuite();

type Boot = Extract<BootCountResult, { readonly ok: true }>;

export interface RekeyedDevice {
  readonly world: World;
  /** Of the configuration that is no longer used. */
  replaced: boolean;
}

export interface RekeyedStart {
  /** The secret of its configuration. */
  readonly configured?: string;
  readonly pushKey?: string | null;
  /** As in RekeyPort. */
  readonly maxFrom?: number | undefined;
  /** Its clock, if it has one. */
  readonly now?: () => number;
  /** Hears of every count that sessions are made from. */
  readonly made?: (boot: Boot) => void;
}

/** The sessions of a secret, for a count that was raised. */
export const sessionsOf = (agentToken: string, { count: bootCount }: Boot): AgentSessions =>
  new AgentSessions({
    suite,
    agentId: AGENT_ID,
    agentToken,
    version: "1",
    bootCount,
    deviceRandom: new Uint8Array(16),
    serialNumber: null,
    limits: DEFAULT_AGENT_LIMITS,
  });

let starts = 0;

/** A start on this storage; null: it does not start. */
export const startRekeyed = (
  storage: StoragePort,
  {
    configured = AGENT_TOKEN,
    pushKey = null,
    maxFrom,
    now = () => 0,
    made = () => undefined,
  }: RekeyedStart = {},
): RekeyedDevice | null => {
  const secrets = startSecrets(storage, suite, configured, now());
  if (secrets === null) return null;
  const boot = raiseBootCount(storage, suite, secrets.token, secrets.earlier);
  if (!boot.ok) return null;
  made(boot);
  starts++;
  const world = new World({
    seed: starts,
    bootCount: boot.count,
    core: { agentToken: secrets.token },
  });
  const device: RekeyedDevice = { world, replaced: secrets.isReplaced };
  const rekeying = new Rekeying({
    core: world.core,
    agentId: AGENT_ID,
    suite,
    storage,
    pushKey,
    secrets,
    ...(maxFrom !== undefined && { maxFrom }),
    now,
    makeSessions: (agentToken, raised) => {
      if (raised !== boot) made(raised);
      return sessionsOf(agentToken, raised);
    },
    replaced: () => {
      device.replaced = true;
    },
    sha256: (text) => createHash("sha256").update(text).digest("hex"),
  });
  if (secrets.trial !== null) rekeying.begin(secrets.trial, boot, secrets.trialMs);
  world.online();
  return device;
};

export const opens = ({ world }: RekeyedDevice, token: string): boolean =>
  new Client(world, "bare", token).open().session.state === "open";

/** The answer of `system.rekey`; undefined if no session opens. */
export const askRekey = ({ world }: RekeyedDevice, params: object, token = AGENT_TOKEN) => {
  const client = new Client(world, "bare", token).open();
  return client.session.state === "open" ? client.call("system.rekey", params) : undefined;
};

/** Some time on, when the silent relay's link has been replaced. */
export const later = ({ world }: RekeyedDevice, ms: number): void => {
  world.timer.advance(ms);
  world.untilConnected();
  world.accept();
};

export const tenMinutesLater = (device: RekeyedDevice): void => later(device, 600_000);

/** The secret that the next start on this storage would have. */
export const storedSecret = (storage: StoragePort, configured = AGENT_TOKEN): string | null =>
  startSecrets(storage, suite, configured, 0)?.token ?? null;
