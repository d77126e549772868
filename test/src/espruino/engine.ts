/** The real Espruino that ESPRUINO_BIN names, as a board. */
import { Engine, type EngineProcess, findEspruino } from "@blindrelay/agent-sdk/engines";
import { LOAD } from "@blindrelay/agent-sdk/testing/build/boot";

/** With ample memory. */
export const binary = findEspruino("ESPRUINO_BIN");
/** Built with 2,630 variables, as on a Puck.js. */
export const smallBinary = findEspruino("ESPRUINO_BIN_2630");

/** For a test's title. */
export const whySkipped = (path: string | null, variable: string): string =>
  path === null ? ` (skipped: ${variable} names no Espruino)` : "";

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
