/** What went wrong with a board, and what a person does about it, for the page. */
import {
  type Board,
  type BoardFailure,
  type BoardReason,
  type Lack,
  lackOf,
  runtimeOf,
  type Starts,
} from "@blindrelay/agent-sdk/board";

/** The page, which has its own class for it, shows both texts. */
export class BoardTrouble extends Error {
  readonly fix: string;

  constructor(message: string, fix: string, cause?: unknown) {
    super(message, { cause });
    this.name = "BoardTrouble";
    this.fix = fix;
  }
}

/** The engine that the SDK's files were tested on. Older ones run their language differently. */
const OLDEST_ENGINE = [2, 29] as const;
/** What the SDK takes at the peak of a call (agent-sdk/build/budgets.json), without a program. */
const LEAST_VARIABLES = 2_050;
const FIRMWARE = "https://www.espruino.com/Download";

const WORDS: { readonly [reason in BoardReason]?: readonly [message: string, fix: string] } = {
  gone: ["The board was unplugged.", "Plug it in again and choose its port."],
  silent: ["The board stopped answering.", "Press its reset button, then choose its port again."],
  nothing: [
    "Nothing answers on this port.",
    `Is it the board's port? Press the board's reset button and choose the port again. A new board may need Espruino's firmware first: ${FIRMWARE}`,
  ],
  damaged: [
    "An Espruino answers, but what is sent reaches it damaged.",
    "Use another cable, without a hub, and choose the port again.",
  ],
};

const LACKS: { readonly [lack in Lack]: string } = {
  crypto: "cryptography",
  sockets: "network sockets",
  "SHA-1": "SHA-1, which every WebSocket needs",
  "SHA-256": "SHA-256",
};

const isOlder = (version: string): boolean => {
  const [major = 0, minor = 0] = (/^(\d+)v(\d+)/.exec(version) ?? []).slice(1).map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_ENGINE;
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
};

/** Why a board that answers cannot be set up from the page; null if it can. */
export const unfit = (board: Board): BoardTrouble | null => {
  const { version, variables } = board;
  const what = `${board.board}, Espruino ${version}`;
  if (isOlder(version)) {
    const fix = `Put ${OLDEST_ENGINE.join("v")} or newer on it: ${FIRMWARE}`;
    return new BoardTrouble(`Its engine is too old (${what}).`, fix);
  }
  if (variables < LEAST_VARIABLES) {
    const need = `It has ${variables} variables; an agent needs about ${LEAST_VARIABLES}.`;
    const fix = `${need} Use a larger board, or make a computer beside it the agent: \`blindrelay bridge --help\`.`;
    return new BoardTrouble(`Its memory is too small (${what}).`, fix);
  }
  const lack = lackOf(board, false, false);
  if (lack === null) return null;
  const fix =
    lack === "sockets"
      ? "Its messages can go through a computer: `blindrelay provision PORT --serial Serial1`, then `blindrelay bridge`."
      : lack === "SHA-256"
        ? "Use a build with it, or `blindrelay provision PORT --slow-crypto`, which takes seconds for each session."
        : "Use a build of Espruino with it, or make a computer beside it the agent: `blindrelay bridge --help`.";
  return new BoardTrouble(`Its build lacks ${LACKS[lack]} (${what}).`, fix);
};

/** `said`: all that came before a board was recognized. */
export const troubleOfBoard = (error: unknown, said = ""): BoardTrouble => {
  const { reason, message, name, fix } = error as Partial<BoardFailure & BoardTrouble> & Error;
  // Of the page itself, such as the relay's refusal.
  if (fix !== undefined) return new BoardTrouble(message, fix, error);
  if (reason === "foreign") {
    const what = runtimeOf(said);
    const fix = `${what[0]?.toUpperCase()}${what.slice(1)}`;
    return new BoardTrouble("No Espruino answers on this port.", fix, error);
  }
  const words = reason === undefined ? undefined : WORDS[reason];
  if (words !== undefined) return new BoardTrouble(...words, error);
  if (name === "NetworkError" || name === "InvalidStateError") {
    return new BoardTrouble(
      "The port does not open: it is in use, or you may not use it.",
      "Close what has it open (another tab, a terminal, `blindrelay monitor`) and choose it again. On Linux you must belong to its group: `sudo usermod -aG dialout $USER`, then log in again.",
      error,
    );
  }
  return new BoardTrouble(message, "", error);
};

const STARTS: { readonly [starts in Starts]: string } = {
  old: "The board keeps the program that it had.",
  none: "The board starts no program until it is set up again.",
  "old or none":
    "The board keeps the program that it had, or starts none: choose its port to see which.",
  "none or new":
    "The board starts no program, or already the new one: choose its port to see which.",
  new: "The board has the new program, and starts it when it is plugged in.",
};

/** A set-up that failed: why, and what the board starts now. */
export class SetUpTrouble extends BoardTrouble {
  /** Whether the board may already be the new agent. */
  readonly mayBeNew: boolean;
  /** Whether its port has to be chosen again. */
  readonly isLost: boolean;

  constructor(starts: Starts, cause: unknown) {
    const { message, fix } = troubleOfBoard(cause);
    super(`${message} ${STARTS[starts]}`, fix, cause);
    this.isLost = Object.hasOwn(WORDS, String((cause as Partial<BoardFailure>).reason));
    this.mayBeNew = starts === "new" || starts === "none or new";
  }
}
