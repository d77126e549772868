/**
 * The contents of an attacked Espruino's Storage, and the code that it runs, whatever its engine.
 */
import { fileURLToPath } from "node:url";
import { buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Identity } from "./hardware.ts";

/** Files by their name in Storage, beside the boot count and the configuration. */
export type EspruinoFiles = { readonly [name in "blindrelay" | "program"]: string };

export const SLOTS = ["boot.0", "boot.1"];

/** `blindrelay`: from buildEspruino, in the form for Storage. */
export const espruinoFiles = (blindrelay: string): EspruinoFiles => ({
  blindrelay,
  program: buildProgram(fileURLToPath(new URL("program.ts", import.meta.url))).code,
});

/** Contents of blindrelay.json. */
export const configOf = ({ agentId, relayToken, agentToken, version }: Identity): string =>
  JSON.stringify({
    url: "ws://relay.test/wss",
    agent_id: agentId,
    relay_token: relayToken,
    agent_token: agentToken,
    v: version,
  });

/**
 * Starts the agent, after LOAD has run since power-up; afterwards the global `agent` can emit
 * events.
 */
export const START = `
  require("blindrelay").start(function (given) {
    agent = given;
    require("program").program(given);
  });
`;

const EXECUTED = "blindrelay warn: executed ";

/** Reads a board's output, and reports the marker of each call that program.ts executed. */
export const tellsExecuted =
  (executed: (marker: unknown) => void) =>
  (line: string): void => {
    if (!line.startsWith(EXECUTED)) return;
    const { marker } = JSON.parse(line.slice(EXECUTED.length));
    if (marker !== null) executed(marker);
  };
