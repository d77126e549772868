/** What a besieged Espruino has in its Storage, and what is run on it, whatever its engine. */
import { fileURLToPath } from "node:url";
import { buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Identity } from "./hardware.ts";

/** Files by their name in Storage, which holds them beside the boot count and the configuration. */
export type EspruinoFiles = { readonly [name in "blindrelay" | "program"]: string };

export const SLOTS = ["boot.0", "boot.1"];

/** `blindrelay`: as buildEspruino has it for Storage. */
export const espruinoFiles = (blindrelay: string): EspruinoFiles => ({
  blindrelay,
  program: buildProgram(fileURLToPath(new URL("program.ts", import.meta.url))).code,
});

/** Text of blindrelay.json. */
export const configOf = ({ agentId, relayToken, agentToken, version }: Identity): string =>
  JSON.stringify({
    url: "ws://relay.test/wss",
    agent_id: agentId,
    relay_token: relayToken,
    agent_token: agentToken,
    v: version,
  });

/**
 * Starts the agent, where LOAD has run since power-up; afterwards the global `agent` is there to
 * emit events.
 */
export const START = `
  require("blindrelay").start(function (given) {
    agent = given;
    require("program").program(given);
  });
`;

const EXECUTED = "blindrelay warn: executed ";

/**
 * Hears what a board prints, and tells the marker of each call that program.ts says it executed.
 */
export const tellsExecuted =
  (executed: (marker: unknown) => void) =>
  (line: string): void => {
    if (!line.startsWith(EXECUTED)) return;
    const { marker } = JSON.parse(line.slice(EXECUTED.length));
    if (marker !== null) executed(marker);
  };
