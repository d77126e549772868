/** A device program as each kind of agent takes it, read and checked once for many agents. */
import { Failure } from "../failure.ts";
import { readProgram, readSource } from "../flash/program.ts";
import { printStatus } from "../output.ts";
import type { Pushable } from "./push-one.ts";

export interface Programs {
  /** Rejects with a Failure where such an agent cannot run it. */
  ofRuntime(runtime: string): Promise<Pushable>;
}

/** `version`: what the relay is told of it. Throws a Failure where there is no such program. */
export const programsFor = (path: string, version: string | null): Programs => {
  readSource(path);
  let board: Promise<Pushable> | null = null;
  const forBoard = async (): Promise<Pushable> => {
    const { code, wanted } = await readProgram(path);
    if (wanted.length > 0) printStatus(`the trial will show if the board has ${wanted.join(", ")}`);
    return { bytes: Buffer.from(code, "latin1"), version };
  };
  return {
    ofRuntime: (runtime) => {
      if (runtime.startsWith("espruino ")) {
        board ??= forBoard();
        return board;
      }
      const text = `agents on ${runtime.split(" ")[0]} take no programs over the relay`;
      throw new Failure("agentError", text);
    },
  };
};
