/**
 * Writes a device program to an Espruino board. The order keeps a half-flashed board quiet: stop
 * what is running, remove what would start it, write SDK and program, read both back, and only then
 * write what starts them.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { answerOf, isList, isText } from "./answer.ts";
import { type Board, readBoard } from "./board.ts";
import type { Dialect } from "./dialect.ts";
import { BoardFailure } from "./failure.ts";
import { wait } from "./port.ts";
import type { FittedProgram } from "./program.ts";
import type { EspruinoRepl } from "./repl.ts";
import {
  type BoardFile,
  eraseFile,
  isOnBoard,
  makeRoom,
  type Progress,
  sizeOnBoard,
  writeFile,
} from "./upload.ts";

const SDK_FILE = "blindrelay";
const PROGRAM_FILE = "program";
export const START_FILE = ".bootcde";
/** The image stored by save(), which would start instead of what is flashed. */
export const IMAGE_FILE = ".varimg";

/** Pushed programs and their records, which would run instead. */
const PUSHED_FILES = ["push.0", "push.1", "program.1"];

/** From the restart to the program's first output. */
const RESTART_MS = 500;

export interface FlashOptions {
  readonly sdk: string;
  /** Makes it for this board. Rejects with a Failure (usage). */
  readonly program: (board: Board, notice: Notice) => Promise<FittedProgram>;
  readonly dialect: Pick<Dialect, "bootCode" | "isBootCode">;
  /** The program's version; sent at every login. */
  readonly firmwareVersion: string | undefined;
  /** Start it at every power-up. */
  readonly save: boolean;
  readonly dryRun: boolean;
  /** Accept a board that needs our own JavaScript for SHA-256. */
  readonly slowCrypto: boolean;
}

export interface FlashReport {
  readonly board: Board;
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    /** It was already there, byte for byte. */
    readonly unchanged: boolean;
  }[];
}

/** A notice for the user; not a failure. */
export type Notice = (text: string) => void;

/** What an agent needs of a board's build. */
export type Lack = "crypto" | "sockets" | "SHA-1" | "SHA-256";

/** What the board lacks for an agent; null if it lacks nothing. */
export const lackOf = (board: Board, slowCrypto: boolean, overSerial: boolean): Lack | null => {
  if (!board.modules.includes("crypto")) return "crypto";
  if (!overSerial && !board.modules.includes("net")) return "sockets";
  // Every WebSocket needs it.
  if (!overSerial && !board.sha1) return "SHA-1";
  return board.sha256 || slowCrypto ? null : "SHA-256";
};

/** The same for the command's user, with the fix. */
export const boardProblem = (
  board: Board,
  slowCrypto: boolean,
  overSerial: boolean,
): string | null => {
  const build = `(${board.board} ${board.version})`;
  switch (lackOf(board, slowCrypto, overSerial)) {
    case "crypto":
      return `this Espruino ${build} has no crypto: use a build with it, or use a bridge as the agent (\`blindrelay bridge --help\`, mode lines)`;
    case "sockets":
      return `this Espruino ${build} has no sockets: use a build with them, or provision it for its UART with --serial (\`blindrelay provision --help\`)`;
    case "SHA-1":
      return `no SHA-1 in this build of Espruino ${build}, which every WebSocket needs: use a build with the crypto library`;
    case "SHA-256":
      return `no SHA-256 in this build of Espruino ${build}: use a build with USE_SHA256=1, or specify --slow-crypto to do it in JavaScript, which takes seconds for each session`;
    default:
      return null;
  }
};

/** Rejects with a Failure (usage) for a program whose names the board lacks. */
export const checkNames = async (board: EspruinoRepl, program: FittedProgram): Promise<void> => {
  if (program.wanted.length === 0) return;
  const types = program.wanted.map((name) => `typeof ${name}`).join(",");
  const found = await answerOf(board, isList(isText), `[${types}]`);
  const missing = program.wanted.filter((_, i) => found[i] === "undefined");
  if (missing.length === 0) return;
  throw new BoardFailure(
    "names",
    `${program.path} uses names that this board does not have: ${missing.join(", ")}`,
  );
};

/** Ends the running agent too: nothing may run from flash that is about to be erased. */
export const stopPrograms = async (board: EspruinoRepl): Promise<void> => {
  await board.type("reset()");
  await wait(RESTART_MS);
  await board.attach(true);
};

/** SDK and program as files of the board. */
export const filesOf = (sdk: string, program: FittedProgram): BoardFile[] => [
  { name: SDK_FILE, content: sdk },
  { name: PROGRAM_FILE, content: program.code },
];

/** Rejects with a Failure (device) if these will not fit in place of their predecessors. */
export const checkRoom = (
  board: EspruinoRepl,
  found: Board,
  files: readonly BoardFile[],
): Promise<void> => {
  const replaced = files.filter(({ name }) => found.files.includes(name));
  const replacedBytes = replaced.reduce((sum, file) => sum + sizeOnBoard(file), 0);
  const { freeBytes, trashBytes } = found;
  return makeRoom(board, files, { freeBytes: freeBytes + replacedBytes, trashBytes }, false);
};

/**
 * Writes SDK and program to an attached board and restarts it; with `dryRun` only checks. Rejects
 * with a Failure that names the fix.
 */
export const flashEspruino = async (
  board: EspruinoRepl,
  options: FlashOptions,
  progress: Progress,
  notice: Notice,
): Promise<FlashReport> => {
  const { save, dryRun } = options;
  const found = await readBoard(board);
  const problem = boardProblem(found, options.slowCrypto, found.uart !== null);
  if (problem !== null) throw new BoardFailure("lacks", problem);
  if (found.agentId === null) {
    throw new Failure(
      "device",
      `this board has not been provisioned yet: run \`blindrelay provision ${board.port.name} --name NAME\` first`,
    );
  }
  const program = await options.program(found, notice);
  await checkNames(board, program);

  const wanted = filesOf(options.sdk, program);
  const { bootCode, isBootCode } = options.dialect;
  const start: BoardFile = {
    name: START_FILE,
    content: bootCode(options.firmwareVersion, found.push),
  };
  const missing: BoardFile[] = [];
  for (const file of wanted) if (!(await isOnBoard(board, file))) missing.push(file);
  const startIsThere = await isOnBoard(board, start);
  const report: FlashReport = {
    board: found,
    files: wanted.map((file) => ({
      name: file.name,
      bytes: file.content.length,
      unchanged: !missing.includes(file),
    })),
  };

  if (found.files.includes(START_FILE) && !startIsThere && !isBootCode(await readStart(board))) {
    notice(
      `${START_FILE} on the board, which blindrelay did not write, ${dryRun ? "would be" : "is"} replaced`,
    );
  }
  if (dryRun) {
    await checkRoom(board, found, missing);
    return report;
  }

  await stopPrograms(board);
  if (found.files.includes(IMAGE_FILE)) {
    notice(
      "the image that save() stored on the board is erased: otherwise it would start instead of this program",
    );
    await eraseFile(board, IMAGE_FILE);
  }
  const pushed = PUSHED_FILES.filter((name) => found.files.includes(name));
  if (missing.length > 0 || pushed.length > 0 || !save || !startIsThere) {
    if (found.files.includes(START_FILE)) await eraseFile(board, START_FILE);
    for (const name of pushed) await eraseFile(board, name);
    for (const file of missing)
      if (found.files.includes(file.name)) await eraseFile(board, file.name);
    await makeRoom(board, [...missing, start], await readBoard(board), true);
    for (const file of missing) await writeFile(board, file, progress);
    if (save) await writeFile(board, start, progress);
  }
  return report;
};

/** Its beginning: a longer file is not ours. */
const readStart = (board: EspruinoRepl): Promise<string> =>
  answerOf(board, isText, `(""+require("Storage").read("${START_FILE}")).substr(0,300)`);

/** Starts what was flashed: by a restart or, if it is not saved, by typing what would start it. */
export const startEspruino = async (
  board: EspruinoRepl,
  { save, firmwareVersion, dialect }: Pick<FlashOptions, "save" | "firmwareVersion" | "dialect">,
  push: boolean,
): Promise<void> => {
  await board.type("load()");
  if (save) return;
  await wait(RESTART_MS);
  await board.attach(true);
  await board.type(dialect.bootCode(firmwareVersion, push));
};
