/**
 * A device program in the form that each kind of agent needs, read and checked once for many
 * agents.
 */
import { describeRefusal, isSyntax, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "../base/output.ts";
import { readProgram, readSource } from "../flash/program.ts";
import type { Programs, Pushable } from "./push-one.ts";

/** The end of what a board with Unicode strings calls itself (agent-sdk/src/espruino/agent.ts). */
const WIDE_RUNTIME = "unicode";

/** `version`: reported to the relay. Throws a Failure if there is no such program. */
export const programsFor = (path: string, version: string | null): Programs => {
  const source = readSource(path);
  const forBoard = async (isWide: boolean): Promise<Pushable> => {
    const { code, wanted } = await readProgram(path, isWide);
    if (wanted.length > 0) printStatus(`the trial will show if the board has ${wanted.join(", ")}`);
    return { bytes: Buffer.from(code, "latin1"), version };
  };
  const forNode = async (): Promise<Pushable> => {
    const { checkProgram } = await loadDialect();
    const wrong = checkProgram(source).refused.find(isSyntax);
    if (wrong !== undefined) throw new Failure("usage", describeRefusal(path, wrong));
    return { bytes: Buffer.from(source), version };
  };
  const made = new Map<string, Promise<Pushable>>();
  return {
    async ofRuntime(runtime) {
      const [name = ""] = runtime.split(" ");
      if (name !== "espruino" && name !== "node") return null;
      const isWide = name === "espruino" && runtime.endsWith(` ${WIDE_RUNTIME}`);
      const kind = `${name} ${isWide}`;
      const program = made.get(kind) ?? (name === "node" ? forNode() : forBoard(isWide));
      made.set(kind, program);
      return program;
    },
  };
};
