/** Why a command exits with a code other than 0 (docs/commands.md, "Exit codes"). */
export const EXIT = {
  expectation: 1,
  usage: 2,
  agentError: 3,
  unreachable: 4,
  refused: 5,
  timeout: 6,
  device: 7,
  fault: 70,
  interrupted: 130,
} as const;

export type FailureKind = keyof typeof EXIT;

/** `message` names the cause and its fix, for a person; it contains no secret. */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly exitCode: number;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "Failure";
    this.kind = kind;
    this.exitCode = EXIT[kind];
  }
}
