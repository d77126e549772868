/** A device program that reports in its log whenever it executes something. */
import type { Agent } from "@blindrelay/agent-sdk";

/** A handler that takes this long answers into whatever is left of its session. */
const SLOW_MS = 700;

export default (agent: Agent): void => {
  const execute = (params: { readonly marker?: unknown }): object => {
    // A warning, because a board prints nothing below that.
    agent.log("warn", "executed", { marker: params.marker });
    return { echo: params.marker, from: agent.id };
  };
  agent.handle("now", execute);
  agent.handle("slow", (params) => {
    const result = execute(params);
    return new Promise((resolve) => {
      agent.after(SLOW_MS, () => resolve(result));
    });
  });
};
