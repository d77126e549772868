/**
 * A valve with a memory. `valve.open {percent}` moves it and answers where it stands, `valve.state`
 * answers where it stands and how often it was moved. A position that no valve can take is refused
 * and moves nothing.
 */
import type { Agent } from "@blindrelay/agent-sdk";

const isPosition = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= 100;

export default (agent: Agent): void => {
  let percent = 0;
  let moves = 0;
  const state = () => ({ percent: percent, moves: moves });

  agent.handle("valve.open", (params) => {
    const wanted = ((params ?? {}) as { percent?: unknown }).percent;
    if (!isPosition(wanted)) throw new Error("percent must be a number from 0 to 100");
    percent = wanted;
    moves += 1;
    return state();
  });
  agent.handle("valve.state", state);
};
