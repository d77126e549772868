/**
 * A device that returns its params: the shortest device program, which shows that no byte changes
 * on the whole path. The same file runs on boards.
 */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  agent.handle("echo", (params) => params);
};
