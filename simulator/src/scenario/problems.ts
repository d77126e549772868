/** The problems of a scenario, each with file, line and column. */

export interface Problem {
  file: string;
  /** Counted from 1. */
  line: number;
  column: number;
  message: string;
}

const SHOWN = 20;

/** A scenario, or a part of it, that cannot be run: exit code 2. */
export class ScenarioError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const lines = problems
      .slice(0, SHOWN)
      .map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`);
    if (problems.length > SHOWN) lines.push(`… and ${problems.length - SHOWN} more`);
    super(lines.join("\n"));
    this.name = "ScenarioError";
    this.problems = problems;
  }
}

/** A file that cannot be read as a scenario. */
export const unreadable = (file: string, message: string): ScenarioError =>
  new ScenarioError([{ file, line: 1, column: 1, message }]);
