/**
 * What the page loads when somebody adds a device: the code that reaches a board through Web
 * Serial, checks its program and sets it up, the same as the `blindrelay` command's, and QR codes.
 * It is a bundle of its own, because it includes a parser.
 */
import {
  type Board,
  type BoardConfig,
  BoardFailure,
  EspruinoRepl,
  FirstError,
  inSource,
  pushKeyOf,
  readBoard,
  type SdkFile,
  SetUpFailure,
  type SourceMap,
  sdkFileName,
  setUpBoard,
  toBoardProgram,
  type Wifi,
  wifiProblem,
} from "@blindrelay/agent-sdk/board";
import * as dialect from "@blindrelay/agent-sdk/build/device-program";
import { makeToken } from "@blindrelay/protocol";
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { encode } from "uqr";
import { BoardTrouble, SetUpTrouble, troubleOfBoard, unfit } from "./troubles.ts";
import { openWebPort, type WebSerialPort } from "./web-serial.ts";

export { type FirstError, type SetUpTrouble, wifiProblem };

/** Below it the code for pushes and a log leaves no room for a program. */
const PUSH_VARIABLES = 4_000;

/** An agent that the relay has made. */
export interface Made {
  readonly agentId: string;
  readonly name: string;
  readonly relayToken: string;
}

export interface Plan {
  /** ws:// or wss:// of the relay, as the board sees it. */
  readonly url: string;
  readonly agentToken: string;
  readonly wifi: Wifi | null;
  /** JavaScript. */
  readonly source: string;
  /** What places in it are called. */
  readonly file: string;
  /** Called once everything is checked, before the board is changed. */
  readonly make: () => Promise<Made>;
}

/** What happens, for a person, and how much of it is done, from 0 to 1. */
export type Told = (what: string, done: number) => void;

/** Of a file in the page's folder, a byte string. */
const fetchSdk = async (file: SdkFile): Promise<string> => {
  const url = new URL(`console/${sdkFileName(file)}`, document.baseURI);
  const answer = await fetch(url).catch(() => null);
  if (answer?.ok !== true) {
    const fix = "Check your network, and that the relay runs.";
    throw new BoardTrouble("The relay does not give the files for boards.", fix);
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
};

/** Of programs that this page has written, by agent. */
const maps = new Map<string, SourceMap>();

/** A board with Espruino, at a port that stays open until `close`. */
export class OpenBoard {
  readonly found: Board;
  readonly version: AeadVersion;
  readonly #repl: EspruinoRepl;
  #agentId: string | null;

  constructor(repl: EspruinoRepl, found: Board) {
    this.#repl = repl;
    this.found = found;
    this.version = found.aes ? "2" : "1";
    this.#agentId = found.agentId;
  }

  /**
   * What the board prints, with places in a program that this page has written to it. One listens
   * at a time; the function that is returned ends it.
   */
  listen(line: (text: string) => void): () => void {
    const listener = (said: string): void =>
      line(inSource(said, maps.get(this.#agentId ?? "") ?? null));
    this.#repl.onLine = listener;
    return () => {
      // The next one may have come before this one left.
      if (this.#repl.onLine === listener) this.#repl.onLine = () => undefined;
    };
  }

  /** To be given each line: calls `tell` with the first error and its place. */
  firstError(tell: (error: string) => void): FirstError {
    return new FirstError(tell);
  }

  /** Types a line as a person does: the board prints it too. */
  type(line: string): Promise<void> {
    const bytes = new TextEncoder().encode(`${line}\n`);
    return this.#repl.write(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  }

  /** Ends what is running there, like Ctrl-C. */
  interrupt(): Promise<void> {
    return this.#repl.interrupt();
  }

  /** Calls `fn` with the reason once the board is lost, but not after `close`. */
  onLost(fn: (why: BoardTrouble) => void): void {
    this.#repl.onGone = (failure) => fn(troubleOfBoard(failure));
  }

  /**
   * Makes it an agent, writes everything to it and starts it. Rejects with a SetUpTrouble.
   */
  async setUp({ url, agentToken, wifi, source, file, make }: Plan, told: Told): Promise<void> {
    const { sha256, variables, guarded } = this.found;
    const push = variables >= PUSH_VARIABLES;
    let map: SourceMap | null = null;
    const config = async (): Promise<BoardConfig> => {
      told("Making the agent…", 0);
      const { agentId, name, relayToken } = await make();
      this.#agentId = agentId;
      if (map !== null) maps.set(agentId, map);
      return {
        url,
        agent_id: agentId,
        relay_token: relayToken,
        agent_token: agentToken,
        v: this.version,
        name,
        ...(push ? {} : { push: false }),
        // Who took a push key to it does not lose it by the page.
        ...(push && guarded ? { push_key: await pushKeyOf(this.#repl) } : {}),
        ...(wifi === null ? {} : { wifi }),
      };
    };
    try {
      told("Checking board and program…", 0);
      const way = wifi === null ? "network" : "wifi";
      const variant = sha256 ? this.version : "any";
      const sdk = await fetchSdk({ way, variant, push, rekey: false });
      const total = sdk.length + source.length;
      let before = 0;
      const progress = (file: string, done: number, of: number): void => {
        const what = file === "blindrelay" ? "the SDK" : "the program";
        told(`Writing ${what}…`, Math.min(1, (before + done) / total));
        if (done === of) before += of;
      };
      await setUpBoard(this.#repl, {
        config,
        suite: nobleSuite(),
        sdk,
        dialect,
        program: async (board) => {
          const program = programFor(board, file, source);
          map = program.map;
          return program;
        },
        progress,
        notice: () => undefined,
      });
    } catch (error) {
      const starts = error instanceof SetUpFailure ? error.starts : "old";
      const cause = error instanceof SetUpFailure ? error.cause : error;
      throw new SetUpTrouble(starts, cause);
    }
  }

  close(): Promise<void> {
    return this.#repl.close();
  }
}

/** Throws a Failure. */
const programFor = (board: Board, file: string, source: string) => {
  const program = toBoardProgram(dialect, file, source, board.isWide);
  const has = (name: string): boolean => board.modules.includes(name) || board.files.includes(name);
  const lacking = program.modules.filter((name) => !has(name));
  if (lacking.length === 0) return program;
  throw new BoardFailure(
    "names",
    `The program requires modules that this board does not have: ${lacking.join(", ")}. \`blindrelay flash --modules DIR\` brings them along.`,
  );
};

/** Opens a port and finds out what is there. Rejects with a BoardTrouble; then it is closed. */
export const openBoard = async (serial: WebSerialPort): Promise<OpenBoard> => {
  const port = await openWebPort(serial).catch((error) => {
    throw troubleOfBoard(error);
  });
  const repl = new EspruinoRepl(port);
  try {
    await repl.attach(true);
    const found = await readBoard(repl);
    const problem = unfit(found);
    if (problem !== null) throw problem;
    return new OpenBoard(repl, found);
  } catch (error) {
    const trouble = troubleOfBoard(error, repl.firstWords);
    await port.close();
    throw trouble;
  }
};

/** Where boards do not run a program, one line each; empty if they run it. */
export const problemsOf = (source: string): string[] =>
  dialect.checkProgram(source).refused.map(({ line, column, rule, text, fix }) => {
    const what = text === "" ? "" : `: ${text}`;
    return `Line ${line}, column ${column}: ${rule}${what}${fix === null ? "" : ` (${fix})`}`;
  });

/** A new end-to-end secret. It is made here, and sent to the board only. */
export const makeSecret = (): string =>
  makeToken("e2e", crypto.getRandomValues(new Uint8Array(32)));

/** The modules of a QR code, row by row; true is dark. Error correction M. */
export const qrCodeOf = (text: string): readonly (readonly boolean[])[] =>
  encode(text, { ecc: "M", border: 4 }).data;
