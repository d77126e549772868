/** The real Espruino that ESPRUINO_BIN names, as a board. */
import { Engine, type EngineProcess, findEspruino } from "@blindrelay/agent-sdk/engines";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";

/** With ample memory. */
export const binary = findEspruino("ESPRUINO_BIN");
/** Built with 2,630 variables, as on a Puck.js. */
export const smallBinary = findEspruino("ESPRUINO_BIN_2630");
/** The same in the layout of a board: 32 bits, without Unicode strings. */
export const boardBinary = findEspruino("ESPRUINO_BIN_32");

/** For a test's title. */
export const whySkipped = (path: string | null, variable: string): string =>
  path === null ? ` (skipped: ${variable} names no Espruino)` : "";

/** Engines with as much memory as a Puck.js. */
export const SMALL_ENGINES = [
  { name: "2,630 variables", path: smallBinary, variable: "ESPRUINO_BIN_2630" },
  { name: "2,630 variables of 32 bits", path: boardBinary, variable: "ESPRUINO_BIN_32" },
];

/** All that tests of a whole board run on. */
export const ENGINES = [
  { name: "roomy", path: binary, variable: "ESPRUINO_BIN" },
  ...SMALL_ENGINES,
];

const START = `
  ${LOAD}
  try {
    require("blindrelay").start(require("program").program);
    var watch = setInterval(() => {
      if (require("blindrelay").status().state !== "online") return;
      clearInterval(watch);
      tell({ ok: true });
    }, 10);
  } catch (e) {
    tell({ ok: false, message: e.toString() });
  }
`;
const PROVISION = `
  try { require("blindrelay").provision(); tell({ ok: true }); }
  catch (e) { tell({ ok: false, message: e.toString() }); }
`;

interface Outcome {
  readonly ok: boolean;
  readonly message?: string;
}

const check = ({ ok, message }: Outcome): void => {
  if (!ok) throw new Error(message);
};

export class EngineBoard {
  readonly engine: Engine;
  /** The running process; null between lives. */
  life: EngineProcess | null = null;

  constructor(path: string) {
    this.engine = new Engine(path);
  }

  install(name: string, content: string): Promise<void> {
    return this.engine.install(name, content);
  }

  async provision(): Promise<void> {
    check(await this.engine.ask<Outcome>(PROVISION));
  }

  /** `prepare`: runs before anything else on the board. */
  async powerOn(prepare = ""): Promise<void> {
    this.life = this.engine.start(prepare + START);
    check(await this.life.told<Outcome>());
  }

  async powerOff(): Promise<void> {
    await this.life?.kill();
    this.life = null;
  }

  end(): Promise<void> {
    return this.engine.close();
  }
}
