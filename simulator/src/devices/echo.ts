/**
 * A device that gives back what it was asked with: the shortest device program there is, and the
 * probe for "does the whole way change a byte". One file, the same on a board as here.
 */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  agent.handle("echo", (params) => params);
};
