/**
 * Makes a board an agent with a program in one go, for a person who may pull the cable at any
 * moment. What starts the board's program goes first and comes back last, so that in between the
 * board starts nothing, and it is always known what it starts.
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import { type Board, readBoard } from "./board.ts";
import { BoardFailure } from "./failure.ts";
import {
  boardProblem,
  checkNames,
  checkRoom,
  type FlashOptions,
  filesOf,
  flashEspruino,
  IMAGE_FILE,
  type Notice,
  START_FILE,
  startEspruino,
  stopPrograms,
} from "./flash.ts";
import { type BoardConfig, provisionBoard } from "./provision.ts";
import type { EspruinoRepl } from "./repl.ts";
import { eraseFile, type Progress, writeFile } from "./upload.ts";

/**
 * What a board starts at its next power-up: the program that it had, none, the new one, or one of
 * two, where the cable was pulled after a command and before its answer.
 */
export type Starts = "old" | "none" | "old or none" | "none or new" | "new";

export interface SetUpOptions extends Pick<FlashOptions, "sdk" | "dialect" | "program"> {
  /** Makes the agent, once everything is checked and before anything is changed. */
  readonly config: () => Promise<BoardConfig>;
  /** Of any packet version. */
  readonly suite: Suite;
  readonly progress: Progress;
  readonly notice: Notice;
}

/** `cause`: why, a Failure. */
export class SetUpFailure extends Error {
  readonly starts: Starts;

  constructor(starts: Starts, cause: unknown) {
    super("the board was not set up", { cause });
    this.name = "SetUpFailure";
    this.starts = starts;
  }
}

/** Rejects with a Failure, before anything is changed. */
const checkAll = async (
  board: EspruinoRepl,
  found: Board,
  { sdk, program, notice }: SetUpOptions,
): Promise<void> => {
  const problem = boardProblem(found, false, false);
  if (problem !== null) throw new BoardFailure("lacks", problem);
  const fitted = await program(found, notice);
  await checkNames(board, fitted);
  await checkRoom(board, found, filesOf(sdk, fitted));
};

/**
 * For an attached board with a network, new or used before. Resolves when it starts the program.
 * Rejects with a SetUpFailure.
 */
export const setUpBoard = async (board: EspruinoRepl, options: SetUpOptions): Promise<void> => {
  const { suite, sdk, dialect, program, progress, notice } = options;
  let starts: Starts = "old";
  try {
    const found = await readBoard(board);
    const starting = [START_FILE, IMAGE_FILE].filter((name) => found.files.includes(name));
    if (starting.length === 0) starts = "none";
    await checkAll(board, found, options);
    const config = await options.config();
    await stopPrograms(board);
    if (starting.length > 0) starts = "old or none";
    for (const name of starting) await eraseFile(board, name);
    starts = "none";
    await provisionBoard(board, suite, config);
    const start = { save: false, dryRun: false, slowCrypto: false, firmwareVersion: undefined };
    await flashEspruino(board, { sdk, dialect, program, ...start }, progress, notice);
    const push = config.push !== false;
    const content = dialect.bootCode(undefined, push);
    starts = "none or new";
    await writeFile(board, { name: START_FILE, content }, progress);
    starts = "new";
    await startEspruino(board, { ...start, save: true, dialect }, push);
  } catch (error) {
    throw new SetUpFailure(starts, error);
  }
};
