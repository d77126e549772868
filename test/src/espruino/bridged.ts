/** Boards without a network behind a bridge: their UART, and the command at its other end. */
import { House, type Running } from "../cli/processes.ts";
import type { ConversationBoard } from "./conversation.ts";
import type { EngineBoard } from "./engine.ts";
import { Terminals } from "./terminals.ts";

interface Config {
  readonly url: string;
  readonly serial: object;
}

/** The board of a conversation, with the configuration of one on a serial line. */
export const onALine = (
  board: ConversationBoard,
  options: object,
  wired: (config: Config) => Promise<void>,
): ConversationBoard => ({
  ...board,
  async install(name, content) {
    if (name !== "blindrelay.json") return board.install(name, content);
    const config: Config = {
      ...JSON.parse(content),
      serial: { port: "Serial1", baud: 115_200, options },
    };
    await board.install(name, JSON.stringify(config));
    await wired(config);
  },
});

/** The command that carries messages for a board, at the other end of its UART. */
class Bridged {
  readonly terminals = new Terminals();
  private readonly house = new House();
  private running: Running | null = null;

  async start(url: string): Promise<void> {
    await this.terminals.ready();
    const env = { BLINDRELAY_URL: url.replace(/^ws/, "http").replace(/\/wss$/, "") };
    const args = ["bridge", this.terminals.bridge, "--mode", "sealed", "--json"];
    this.running = this.house.start(args, env);
    await this.running.json(); // its port is open
  }

  async end(): Promise<void> {
    await this.running?.stop();
    await this.house.close();
    await this.terminals.end();
  }
}

/** `prepare`: see EngineBoard. */
export const bridgedBoard = (engine: EngineBoard, prepare = ""): ConversationBoard => {
  const bridged = new Bridged();
  const board: ConversationBoard = {
    install: (name, content) => engine.install(name, content),
    provision: () => engine.provision(),
    powerOn: () => engine.powerOn(prepare),
    powerOff: () => engine.powerOff(),
    async end() {
      await engine.end();
      await bridged.end();
    },
  };
  return onALine(board, { path: bridged.terminals.board }, ({ url }) => bridged.start(url));
};
