/** Runs in XS, in place of a project's main.js: starts a device program on command. */
import type { Forward } from "../../core/forward.ts";
import type { Rekey } from "../../core/start-options.ts";
import { type AgentCore, type Program, provisionAgent, startAgent } from "../../moddable/index.ts";
import { ask, hear } from "./bridge.ts";
import { crypt } from "./crypt.ts";
import { network } from "./network.ts";

interface Optional {
  readonly forward: Forward;
  readonly rekey: (pushKey?: string) => Rekey;
}

export const serve = (programs: { [name: string]: Program }, optional?: Optional): void => {
  // For programs that are evaluated later.
  (globalThis as { programs?: object }).programs = programs;
  let core: AgentCore | null = null;
  // Exceptions reach the sender of the command.
  hear("provision", ({ agentToken, seed }) => provisionAgent(agentToken, {}, seed));
  hear("start", ({ options: { takesRekeys, pushKey, ...options }, program, native }) => {
    core = startAgent({
      ...options,
      program: programs[program] as Program,
      network,
      crypt: native ? crypt : {},
      ...(optional && { forward: optional.forward }),
      ...(optional && takesRekeys && { rekey: optional.rekey(pushKey) }),
      device: "xsnap",
      log: (level, message, fields) => {
        ask({ op: "log", level, message, ...(fields && { fields }) });
      },
    });
    core.link.onState((status) => {
      ask({ op: "state", status });
    });
    return core.link.status;
  });
  hear("held", () => core?.sessions.held());
  hear("emit", ({ event, data }) => core?.agent.emit(event, data));
  hear("stop", () => core?.stop());
};
