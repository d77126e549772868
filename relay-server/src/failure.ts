/** Why a command exits with a code other than 0, and the fix (docs/commands.md, "Exit codes"). */
export const EXIT = { usage: 2, unreachable: 4, refused: 5, fault: 70, interrupted: 130 } as const;

/** Of whatever was thrown. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** `message` names the cause and its fix, on one line, for a person. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(kind: keyof typeof EXIT, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = EXIT[kind];
  }
}
