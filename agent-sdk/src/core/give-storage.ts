/**
 * How an edge, or a build that has none of its own, gives an agent its storage.
 *
 * [portable]
 */
import type { StoragePort } from "../ports.ts";
import type { Agent, Program } from "./agent.ts";
import { DeviceStorage } from "./storage.ts";

/**
 * Gives an agent its storage, and an `expose` that does nothing, before its program starts: a board
 * whose program has neither does not contain them.
 */
export const giveStorage = (agent: Agent, port: StoragePort): void => {
  agent.expose = () => undefined;
  (agent as { storage: DeviceStorage }).storage = new DeviceStorage(port);
};

/** The program with storage, for a build that has none of its own. `port`: of the boot count. */
export const withStorage =
  (program: Program, port: StoragePort): Program =>
  (agent) => {
    giveStorage(agent, port);
    return program(agent);
  };
