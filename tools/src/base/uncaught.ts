/**
 * Errors that no command's code caught. While a device program runs in this process, errors from
 * its timers and promises are the program's; all others are bugs in blindrelay.
 */
import { fileURLToPath } from "node:url";
import { textOfThrown } from "@blindrelay/protocol/command-line";

/** Claims the error, or returns false to end the process. */
type Claim = (error: unknown) => boolean;

let claim: Claim | null = null;

/** `fn` is called for every uncaught error until the returned function is called. */
export const claimUncaught = (fn: Claim): (() => void) => {
  claim = fn;
  return () => {
    claim = null;
  };
};

export const isClaimed = (error: unknown): boolean => claim?.(error) ?? false;

/** Folders of this code, as they appear in stacks. */
const OURS = [
  new URL("../main.ts", import.meta.url).href,
  ...["agent-sdk", "client-sdk", "protocol"].map((name) =>
    import.meta.resolve(`@blindrelay/${name}`),
  ),
].map((door) => new URL("./", door).href);

/**
 * A frame's file, line and column: `at fn (file:///a.js:1:2)`, `at /a.js:1:2`. Node's own are
 * `node:…`.
 */
const FRAME = /^\s+at (?:.* \(|async )?((?:file:\/\/|\/|[A-Za-z]:\\).*):(\d+):(\d+)\)?$/;

interface Frame {
  readonly file: string;
  readonly place: string;
}

const framesOf = (stack: string): Frame[] =>
  stack.split("\n").flatMap((line) => {
    const [, file, row, column] = FRAME.exec(line) ?? [];
    if (file === undefined) return [];
    const path = file.startsWith("file://") ? fileURLToPath(file) : file;
    return [{ file, place: `${path}:${row}:${column}` }];
  });

const isOurs = ({ file }: Frame): boolean => OURS.some((folder) => file.startsWith(folder));
/** Where it is installed, our own code lies in such a folder too. */
const isForeign = (frame: Frame): boolean =>
  frame.file.includes("/node_modules/") && !isOurs(frame);

const stackOf = (error: unknown): string => {
  try {
    return error instanceof Error && typeof error.stack === "string" ? error.stack : "";
  } catch {
    return ""; // a program may give an error a message that cannot be made a text
  }
};

/**
 * Whether a device program threw this: its code is on the stack, or there is no stack, as with a
 * rejection with a text.
 */
export const isOfProgram = (error: unknown): boolean => {
  const frames = framesOf(stackOf(error)).filter((frame) => !isForeign(frame));
  return frames.length === 0 || frames.some((frame) => !isOurs(frame));
};

/**
 * `reason`, preceded by the place in the program and followed by its frames, if there are any;
 * otherwise with the whole stack.
 */
export const describeThrown = (error: unknown): string => {
  const stack = stackOf(error);
  const isOwn = (frame: Frame): boolean => !isOurs(frame) && !isForeign(frame);
  const own = framesOf(stack).find(isOwn);
  if (own === undefined) return stack === "" ? textOfThrown(error) : stack;
  const isShown = (line: string): boolean => !/^\s+at /.test(line) || framesOf(line).some(isOwn);
  return `${own.place}: ${stack.split("\n").filter(isShown).join("\n")}`;
};
