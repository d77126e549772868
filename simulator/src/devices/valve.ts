/**
 * A valve that remembers its position. `valve.open {percent}` moves it and returns its position,
 * `valve.state` returns its position and the number of moves. An invalid position is refused and
 * does not move it.
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
