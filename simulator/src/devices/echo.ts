/**
 * A device that returns what it was sent: the shortest device program, which shows that no byte
 * changes on the whole path. One file, the same as on a board.
 */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  agent.handle("echo", (params) => params);
};
