/** How a command fails: the exit codes of all blindrelay commands (docs/commands.md). */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 4,
  refused: 5,
  fault: 70,
  interrupted: 130,
} as const;

export class Failure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
  }
}
