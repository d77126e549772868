/** The thermostat on a real Espruino, behind its own relay, and the test calls to it. */
import { fileURLToPath } from "node:url";
import { buildEspruino, buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Agent, CallOptions, Client } from "@blindrelay/client-sdk/node";
import type { RelayFixture } from "../xs/relay-fixture.ts";
import { EngineBoard } from "./engine.ts";

/** One call to each method that answers. */
export const CALLS: readonly (readonly [method: string, params?: object])[] = [
  ["system.info"],
  ["state"],
  ["target.set", { target: 20.25 }],
  ["pid.get"],
  ["pid.set", { kp: 2.125 }],
  ["schedule.get"],
  ["boost", { ms: 5 }],
  ["echo", { a: "grüße", b: [1, 0.5, -3] }],
  ["info"],
  ["mode.set", { mode: "eco" }],
];

export interface Thermostat {
  readonly board: EngineBoard;
  agentOf(client: Client): Agent;
  /** Makes these calls at once, each by a client of its own; returns how each ended. */
  callAtOnce(
    calls: typeof CALLS,
    options?: CallOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]>;
}

/** Provisioned and online, in packet version "2". */
export const startThermostat = async (
  fixture: RelayFixture,
  binary: string,
): Promise<Thermostat> => {
  const board = new EngineBoard(binary);
  const { url, agentId, relayToken, agentToken } = await fixture.addAgent("thermostat");
  const config = {
    url: `${url.replace("http", "ws")}/wss`,
    agent_id: agentId,
    relay_token: relayToken,
    agent_token: agentToken,
    v: "2",
  };
  const program = fileURLToPath(new URL("thermostat.ts", import.meta.url));
  await board.install("blindrelay", buildEspruino("2").stored);
  await board.install("blindrelay.json", JSON.stringify(config));
  await board.install("program", buildProgram(program).code);
  await board.provision();
  await board.powerOn();
  const agentOf = (client: Client): Agent => client.agent(agentId, agentToken, { version: "2" });
  return {
    board,
    agentOf,
    callAtOnce: (calls, options) =>
      Promise.allSettled(
        calls.map(async ([method, params]) => {
          const client = await fixture.connect();
          try {
            return await agentOf(client).call(method, params, options);
          } finally {
            client.close();
          }
        }),
      ),
  };
};
