/**
 * Runs in QuickJS, in place of a project's main.js: starts a device program on command. It calls
 * the host by the functions of `host`, and the host calls it by those of `device`.
 */
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { checkVectors } from "@blindrelay/protocol/testing";
import { checkField } from "@blindrelay/protocol/testing/forward";
import type { Program } from "../../core/agent.ts";
import type { Forward } from "../../core/forward.ts";
import type { Rekey } from "../../core/start-options.ts";
import type { AgentCore, Host, StartOptions } from "../../embedded/index.ts";
import { embeddedPorts, provisionAgent, startAgent, withStorage } from "../../embedded/index.ts";

/** What only tests need from a host: each state of the link, as JSON. */
declare const host: Host & { state(status: string): void };

interface Optional {
  readonly forward: Forward;
  readonly rekey: (pushKey?: string) => Rekey;
}

/** What the host passes to `start`, as JSON. */
export type QuickjsStart = Omit<StartOptions, "program" | "runtime" | "freeMemory" | "rekey"> & {
  /** It lets its secret be replaced over the relay; `pushKey`: only if that proves the new one. */
  readonly takesRekeys?: boolean;
  readonly pushKey?: string;
};

export const serve = (
  programs: { readonly [name: string]: Program },
  { forward, rekey }: Optional,
): void => {
  const ports = embeddedPorts(host);
  let core: AgentCore | null = null;
  const device = {
    ...ports.events,
    /** `seed`: "" for none. */
    provision: (agentToken: string, seed: string): void =>
      provisionAgent(ports, agentToken, seed === "" ? undefined : seed),
    start: (text: string, program: string): void => {
      const { takesRekeys, pushKey, ...options } = JSON.parse(text) as QuickjsStart;
      core = startAgent(ports, {
        ...options,
        ...(takesRekeys && { rekey: rekey(pushKey) }),
        program: withStorage(programs[program] as Program, ports.storage),
        runtime: "quickjs",
        forward,
      });
      core.link.onState((status) => host.state(JSON.stringify(status)));
    },
    emit: (event: string, data: string): void => {
      core?.agent.emit(event, JSON.parse(data));
    },
    /** One sentence for each failure, as JSON. `field`: of `checkField`, or of `checkVectors`. */
    vectors: (field: string, text: string): string => {
      const file: unknown = JSON.parse(text);
      const { suite } = ports;
      const found = checkField(suite, nobleX25519, field, file);
      return JSON.stringify(found ?? checkVectors(suite, { [field]: file }));
    },
  };
  Object.assign(globalThis, { device });
};
