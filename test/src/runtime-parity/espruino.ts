/**
 * The built Espruino file: in the subset check, on a real Espruino, and on one as small as a
 * Puck.js.
 */
import { buildEspruino, buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import { binary, EngineBoard, SMALL_ENGINES, whySkipped } from "../espruino/engine.ts";
import type { Installation, ParityBoard, Runtime } from "./board.ts";
import { PROGRAMS } from "./programs.ts";

const builds = new Map<string, string>();
/** Built once, as it takes a second. */
const built = (version: AeadVersion): string => {
  const known = builds.get(version) ?? buildEspruino(version).stored;
  builds.set(version, known);
  return known;
};

/** Storage in the form that the file needs. */
const filesOf = ({ credentials, version, program }: Installation): [string, string][] => {
  const { url, agentId, relayToken, agentToken } = credentials;
  const config = {
    url: `${url.replace("http", "ws")}/wss`,
    agent_id: agentId,
    relay_token: relayToken,
    agent_token: agentToken,
    v: version,
    name: "board",
  };
  return [
    ["blindrelay", built(version as AeadVersion)],
    ["blindrelay.json", JSON.stringify(config)],
    ["program", buildProgram(PROGRAMS[program].path).code],
  ];
};
const SLOTS = ["boot.0", "boot.1"];

const makeSubset = async (): Promise<ParityBoard> => {
  const files = new Map<string, string>();
  let life: SubsetBoard | null = null;
  const powerOff = async (): Promise<void> => {
    life?.powerOff();
    life = null;
  };
  return {
    async install(installation) {
      for (const [name, content] of filesOf(installation)) files.set(name, content);
    },
    async provision() {
      new SubsetBoard(files).evaluate('require("blindrelay").provision()');
    },
    async powerOn() {
      const board = new SubsetBoard(files);
      life = board;
      board.evaluate('require("blindrelay").start(require("program").program)');
      while (board.evaluate('require("blindrelay").status().state') !== "online")
        await new Promise((resolve) => setTimeout(resolve, 2));
    },
    powerOff,
    async spoil() {
      for (const slot of SLOTS) files.set(slot, "torn");
    },
    end: powerOff,
  };
};

const makeEngine = async (path: string): Promise<ParityBoard> => {
  const board = new EngineBoard(path);
  return {
    async install(installation) {
      for (const [name, content] of filesOf(installation)) await board.install(name, content);
    },
    provision: () => board.provision(),
    powerOn: () => board.powerOn(),
    powerOff: () => board.powerOff(),
    async spoil() {
      for (const slot of SLOTS) await board.install(slot, "torn");
    },
    end: () => board.end(),
  };
};

const ROOMY = { maxPlaintext: 2048, maxMessage: 4096, tight: false, versions: ["1", "2"] } as const;

export const subsetBoard: Runtime = {
  ...ROOMY,
  title: "the subset check",
  isThere: true,
  isEspruino: true,
  runtime: /^espruino 2v29 SUBSET$/,
  make: makeSubset,
};

export const espruinoBoard: Runtime = {
  ...ROOMY,
  title: `a real Espruino${whySkipped(binary, "ESPRUINO_BIN")}`,
  isThere: binary !== null,
  isEspruino: true,
  runtime: /^espruino 2v\d+/,
  make: () => makeEngine(binary as string),
};

/** Suite "1" takes ten times as long there. */
export const smallEspruinoBoards: readonly Runtime[] = SMALL_ENGINES.map(
  ({ name, path, variable }) => ({
    title: `a real Espruino with ${name}${whySkipped(path, variable)}`,
    isThere: path !== null,
    runtime: /^espruino 2v\d+/,
    maxPlaintext: 384,
    maxMessage: 1536,
    isEspruino: true,
    tight: true,
    versions: ["2"],
    make: () => makeEngine(path as string),
  }),
);
