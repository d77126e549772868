/** What is known of device programs for boards; a parser that is loaded on demand knows it. */
import type { Mark } from "./source-map.ts";

/** A place that boards do not run, and what to write instead. */
export interface Refusal {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  readonly rule: string;
  /** The source there, a single line. */
  readonly text: string;
  /** What to write instead; null if the rule says so. */
  readonly fix: string | null;
}

export interface ProgramCheck {
  /** In the order of the source. */
  readonly refused: readonly Refusal[];
  /**
   * Names and members, such as `analogRead`, and modules, as `require("DHT22")`, that only the
   * board itself knows to be there.
   */
  readonly asked: readonly string[];
  /** What it requires by a literal name, apart from the SDK. */
  readonly modules: readonly string[];
}

/** A module that a board's build lacks, as a program carries it along. */
export interface BoardModule {
  readonly name: string;
  /** ASCII. */
  readonly code: string;
  /** Of that text. */
  readonly marks: readonly Mark[];
}

/** A board that is known by its name. */
export interface KnownBoard {
  /** As `check --board` takes it. */
  readonly name: string;
  /** As its firmware calls it (`process.env.BOARD`). */
  readonly build: string;
  /** Those that Espruino's own build of it has. */
  readonly modules: readonly string[];
}

/** An estimate, in variables of the board. */
export interface BoardMemory {
  readonly board: string;
  readonly variables: number;
  /** By SDK and program once the agent is online. */
  readonly used: number;
  /** The program's share of that. */
  readonly program: number;
  /** What a call needs in addition. */
  readonly call: number;
  readonly fits: boolean;
}

export interface Dialect {
  /** The boards whose number of variables is known. */
  readonly BOARDS: readonly KnownBoard[];
  /** Of a program that can be read, on the board of this name; null if the name is unknown. */
  estimateMemory(code: string, board: string): BoardMemory | null;
  /** `isWide`: for engines with Unicode strings (Bangle.js), which forget UTF-8 in templates. */
  checkProgram(code: string, isWide?: boolean): ProgramCheck;
  /** What Espruino's `require` evaluates. `isWide`: as above; elsewhere texts become UTF-8. */
  toModule(code: string, isWide?: boolean): string;
  /** Where the text that `toModule` and then `exactDecimals` make comes from. */
  marksOfProgram(code: string, isWide?: boolean): readonly Mark[];
  /** A module of Espruino's kind, in ASCII, and what it requires; or why it cannot be read. */
  readBoardModule(
    code: string,
    isWide?: boolean,
  ):
    | (Pick<BoardModule, "code" | "marks"> & { readonly modules: readonly string[] })
    | { readonly refused: Refusal };
  /** A program in one file with these modules, each after those that it requires. */
  withModules(program: string, modules: readonly BoardModule[]): string;
  /** The marks of that file; the modules' files are numbered from 1. */
  marksWithModules(
    program: string,
    marks: readonly Mark[],
    modules: readonly BoardModule[],
  ): readonly Mark[];
  /** With decimal literals in the form that Espruino reads exactly; line numbers do not change. */
  exactDecimals(code: string): string;
  /**
   * The code that starts the program at power-up; the relay is told `firmwareVersion`. `push`: for
   * the SDK's file that accepts programs over the relay.
   */
  bootCode(firmwareVersion: string | undefined, push: boolean): string;
  /** Whether a start file was made by this or an earlier version of `bootCode`. */
  isBootCode(content: string): boolean;
}

/** `file:line:column: reason: source (what to write instead)`. */
export const describeRefusal = (path: string, { line, column, ...why }: Refusal): string => {
  const text = why.text === "" ? "" : `: ${why.text}`;
  return `${path}:${line}:${column}: ${why.rule}${text}${why.fix === null ? "" : ` (${why.fix})`}`;
};
