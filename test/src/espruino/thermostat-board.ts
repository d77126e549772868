/** The thermostat on a real Espruino, behind its own relay, and the test calls to it. */
import { fileURLToPath } from "node:url";
import type { EngineProcess } from "@blindrelay/agent-sdk/engines";
import {
  buildEspruino,
  buildEspruinoSerial,
  buildProgram,
} from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Agent, CallOptions, Client } from "@blindrelay/client-sdk/node";
import type { RelayFixture } from "../xs/relay-fixture.ts";
import { bridgedBoard } from "./bridged.ts";
import type { ConversationBoard } from "./conversation.ts";
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
  readonly board: ConversationBoard;
  /** What runs now. */
  life(): EngineProcess;
  agentOf(client: Client): Agent;
  /** Makes these calls at once, each by a client of its own; returns how each ended. */
  callAtOnce(
    calls: typeof CALLS,
    options?: CallOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]>;
}

/** Provisioned and online, in packet version "2"; behind a bridge if it `isBridged`. */
export const startThermostat = async (
  fixture: RelayFixture,
  binary: string,
  isBridged = false,
): Promise<Thermostat> => {
  const engine = new EngineBoard(binary);
  const board = isBridged ? bridgedBoard(engine) : engine;
  const { url, agentId, relayToken, agentToken } = await fixture.addAgent("thermostat");
  const config = {
    url: `${url.replace("http", "ws")}/wss`,
    agent_id: agentId,
    relay_token: relayToken,
    agent_token: agentToken,
    v: "2",
  };
  const program = fileURLToPath(new URL("thermostat.ts", import.meta.url));
  const build = isBridged ? buildEspruinoSerial : buildEspruino;
  await board.install("blindrelay", build("2").stored);
  await board.install("blindrelay.json", JSON.stringify(config));
  await board.install("program", buildProgram(program).code);
  await board.provision();
  await board.powerOn();
  const agentOf = (client: Client): Agent => client.agent(agentId, agentToken, { version: "2" });
  return {
    board,
    life: () => engine.life as EngineProcess,
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
