/** Runs in XS, in place of a project's main.js: starts a device program on command. */
import type { Forward } from "../../core/forward.ts";
import { type AgentCore, type Program, provisionAgent, startAgent } from "../../moddable/index.ts";
import { ask, hear } from "./bridge.ts";
import { crypt } from "./crypt.ts";
import { network } from "./network.ts";

export const serve = (programs: { [name: string]: Program }, forward?: Forward): void => {
  // For programs that are evaluated later.
  (globalThis as { programs?: object }).programs = programs;
  let core: AgentCore | null = null;
  // Exceptions reach the sender of the command.
  hear("provision", ({ agentToken, seed }) => provisionAgent(agentToken, {}, seed));
  hear("start", ({ options, program, native }) => {
    core = startAgent({
      ...options,
      program: programs[program] as Program,
      network,
      crypt: native ? crypt : {},
      ...(forward && { forward }),
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
