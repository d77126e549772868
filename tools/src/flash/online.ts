/**
 * Checks that a flashed agent is online: a sealed `system.info` through the relay, as any client
 * would send it.
 */

import { setTimeout as wait } from "node:timers/promises";
import type { CallError } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { agentWith } from "../account/agent-with.ts";
import { withClient } from "../account/connect.ts";
import { isPassing } from "../base/call-failure.ts";
import { hasWatchdog } from "../base/watchdog.ts";
import type { Settings } from "../config/settings.ts";

const CONNECT_LIMIT_MS = 15_000;
const POLL_MS = 500;

export interface Online {
  /** As it is told with `--json`. */
  readonly info: unknown;
  /** Undefined: it does not say. */
  readonly runtime: string | undefined;
  /** Whether it ends a pushed program that hangs; true if it accepts none. */
  readonly isGuarded: boolean;
}

/**
 * `hint`: where to look if it does not come online. Rejects with a Failure if a client with this
 * account and secret gets no verified answer in time.
 */
export const waitUntilOnline = async (
  settings: Settings,
  agentId: string,
  limitMs: number,
  signal: AbortSignal,
  hint: string,
): Promise<Online> => {
  const deadline = performance.now() + limitMs;
  const secret = settings.secretOf(agentId);
  return withClient(settings, CONNECT_LIMIT_MS, async (client) => {
    const agent = agentWith(client, agentId, secret);
    for (;;) {
      signal.throwIfAborted();
      const left = deadline - performance.now();
      const options = { timeoutMs: Math.max(1, left), idempotent: true, signal };
      try {
        const info = await agent.call<unknown>("system.info", undefined, options);
        const { methods, runtime: said } = Object(info);
        const runtime = typeof said === "string" ? said : undefined;
        if (!Array.isArray(methods) || !methods.includes("system.push"))
          return { info, runtime, isGuarded: true };
        const { watchdog } = Object(await agent.call("system.push", undefined, options));
        return { info, runtime, isGuarded: hasWatchdog(runtime ?? "", watchdog) };
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        if (deadline - performance.now() > POLL_MS) await wait(POLL_MS);
        else throw late(agentId, limitMs, error, hint);
      }
    }
  });
};

const late = (agentId: string, limitMs: number, error: CallError, hint: string): Failure =>
  new Failure(
    "unreachable",
    `${agentId} was flashed but did not come online within ${limitMs / 1000} s (${error.message}): ${hint}`,
    error,
  );
