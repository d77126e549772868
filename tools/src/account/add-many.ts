/**
 * Makes the agents of a list, so that it can be interrupted at any moment and run again: a secret
 * is kept as pending before the relay is asked, and an agent whose secret is kept is left alone.
 * One that the relay does not list is made again under that secret, unless the relay refuses: it
 * may have the agent and not show it to this token.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { agentIdOf } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Version } from "@blindrelay/protocol/crypto";
import type { Agent, AgentCreated } from "@blindrelay/protocol/schema/rest";
import { isRefused, RestFailure } from "../base/rest.ts";
import type { Key } from "../config/profile.ts";
import type { Settings } from "../config/settings.ts";
import {
  accountRest,
  demandOwnId,
  demandToken,
  dropPendingKey,
  keepKeys,
  keepPendingKeys,
  listAgents,
  makeKey,
} from "./account.ts";
import type { ListedDevice } from "./device-list.ts";

/** Between two writes of the profile, which holds every secret. */
const BATCH = 100;
/** Requests in progress at the same time. */
const AT_ONCE = 8;
const LETTERS = 8;

export interface MadeDevice {
  readonly agentId: string;
  readonly name: string;
  /** False: it was there already. */
  readonly isNew: boolean;
}

/** The same whenever the list is read again, and another for each account. */
const idOf = (username: string, name: string): string => {
  const digest = createHash("sha256")
    .update(JSON.stringify([username, name]))
    .digest();
  return agentIdOf(name, digest.subarray(0, LETTERS));
};

/** What a relay answers for an agent that it has, to a token that may not see it or make one. */
const HIDDEN = ["CONFLICT", "FORBIDDEN"];

/** A relay allows some thousand requests a minute: waits for the next one. */
const WAIT_MS = 5000;

/** Asks again while an account's requests are over its rate, until `signal` is aborted. */
export const patiently = async <Answer>(
  signal: AbortSignal,
  ask: () => Promise<Answer>,
): Promise<Answer> => {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof RestFailure && error.code === "RATE_LIMITED";
      if (!isBusy || signal.aborted) throw error;
      await sleep(WAIT_MS, undefined, { signal }).catch(() => undefined);
    }
  }
};

interface Plan {
  readonly device: ListedDevice;
  readonly agentId: string;
  /** Of the keyring, which the agent keeps; null: none. */
  readonly held: Key | null;
  /** `keep`: the agent is there, and its secret is pending. */
  readonly step: "create" | "keep" | "nothing";
}

/**
 * Throws a Failure: refused where an agent exists whose secret this machine does not have, usage
 * where the secret is for another relay's.
 */
const planOf = (
  devices: readonly ListedDevice[],
  agents: readonly Agent[],
  settings: Settings,
): Plan[] => {
  const { keyring, pending = {}, username } = settings.demandProfile();
  const known = new Set(agents.map(({ agent_id }) => agent_id));
  return devices.map((device): Plan => {
    const { id, name, line } = device;
    const agentId = id ?? idOf(username, name);
    demandOwnId(settings, agentId);
    const held = keyring[agentId] ?? null;
    if (!known.has(agentId)) return { device, agentId, held, step: "create" };
    if (held !== null) return { device, agentId, held, step: "nothing" };
    if (pending[agentId] !== undefined) return { device, agentId, held, step: "keep" };
    const fix = `use the profile that has it, give the line another id, or make a new secret, which the device then needs: blindrelay agent rotate ${agentId} --secret`;
    throw new Failure(
      "refused",
      `line ${line}: ${agentId} exists, and the keyring has no secret for it: ${fix}; nothing was made`,
    );
  });
};

/**
 * `told`: how many of the list are done. Ends early, between two batches, once `signal` is aborted.
 * Throws the first failure after the rest of its batch is settled and kept.
 */
export const addMany = async (
  settings: Settings,
  devices: readonly ListedDevice[],
  version: Version,
  told: (done: number) => void,
  signal: AbortSignal,
): Promise<MadeDevice[]> => {
  const rest = accountRest(settings);
  const plans = planOf(devices, await listAgents(rest), settings);
  const left = plans.filter(({ step }) => step !== "nothing");
  const there = new Set(plans.filter(({ step }) => step === "nothing"));
  const fresh = new Set<Plan>();
  const create = async ({ device, agentId, held }: Plan): Promise<"made" | "hidden"> => {
    const { name, labels } = device;
    const asked = { name, agent_id: agentId, labels: { ...labels } };
    let made: AgentCreated;
    try {
      made = await patiently(signal, () => rest.ask("AgentCreated", "POST", "/agents", asked));
    } catch (error) {
      const isHidden = error instanceof RestFailure && HIDDEN.includes(error.code);
      if (held !== null && isHidden) return "hidden";
      throw error;
    }
    demandToken(made.api_token, "agent", settings.httpUrl());
    if (made.agent_id === agentId) return "made";
    const what = `made ${made.agent_id} instead of ${agentId}`;
    throw new Failure("unreachable", `${settings.httpUrl()} ${what}`);
  };
  for (let at = 0; at < left.length && !signal.aborted; at += BATCH) {
    const batch = left.slice(at, at + BATCH);
    const keys = new Map<string, Key>();
    for (const { agentId, held } of batch) if (held === null) keys.set(agentId, makeKey(version));
    const kept = keys.size === 0 ? keys : keepPendingKeys(settings, keys);
    const made = new Map<string, Key>();
    const failures: Error[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let plan = batch[next++]; plan !== undefined; plan = batch[next++]) {
        if (failures.length > 0) return;
        const key = kept.get(plan.agentId);
        try {
          const isHidden = plan.step === "create" && (await create(plan)) === "hidden";
          if (!isHidden) fresh.add(plan);
          if (key !== undefined) made.set(plan.agentId, key);
          there.add(plan);
        } catch (error) {
          // One that was pending before may be another command's.
          const isOwn = key !== undefined && key === keys.get(plan.agentId);
          if (isOwn && isRefused(error)) dropPendingKey(settings, plan.agentId, key);
          const { kind, message } = error as Failure;
          failures.push(
            error instanceof Failure
              ? new Failure(kind, `line ${plan.device.line}: ${message}`, error)
              : (error as Error),
          );
        }
        told(there.size);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (made.size > 0) keepKeys(settings, made);
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }
  return plans
    .filter((plan) => there.has(plan))
    .map((plan) => ({
      agentId: plan.agentId,
      name: plan.device.name,
      isNew: fresh.has(plan),
    }));
};
