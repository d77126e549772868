/**
 * A device program in the form that each kind of agent needs, read and checked once for many
 * agents.
 */
import { describeRefusal, isSyntax, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "../base/output.ts";
import { carryModules, MODULES_FIX } from "../flash/modules.ts";
import { readProgram, readSource } from "../flash/program.ts";
import type { Programs, Pushable } from "./push-one.ts";

/** The end of what a board with Unicode strings calls itself (agent-sdk/src/espruino/agent.ts). */
const WIDE_RUNTIME = "unicode";
/** What an agent on any board has. */
const ANY = { modules: ["Storage", "crypto"] };

/**
 * `version`: reported to the relay; `folder`: of modules. Throws a Failure if there is no such
 * program.
 */
export const programsFor = (
  path: string,
  version: string | null,
  folder: string | undefined,
): Programs => {
  const source = readSource(path);
  const forBoard = async (isWide: boolean, build: string): Promise<Pushable> => {
    const { BOARDS } = await loadDialect();
    const program = await readProgram(path, isWide);
    const known = BOARDS.find((board) => board.build === build);
    const { code, map, carried, missing } = await carryModules(program, folder, isWide, (name) =>
      (known ?? ANY).modules.includes(name),
    );
    if (carried.length > 0) printStatus(`carried along with the program: ${carried.join(", ")}`);
    // Its Storage may have a module, too.
    const asked = [...program.wanted, ...missing];
    if (asked.length > 0) printStatus(`the trial will show if the board has ${asked.join(", ")}`);
    if (missing.length > 0) printStatus(`if it lacks ${missing.join(", ")}: ${MODULES_FIX}`);
    return { bytes: Buffer.from(code, "latin1"), map, version };
  };
  const forNode = async (): Promise<Pushable> => {
    const { checkProgram } = await loadDialect();
    const wrong = checkProgram(source).refused.find(isSyntax);
    if (wrong !== undefined) throw new Failure("usage", describeRefusal(path, wrong));
    return { bytes: Buffer.from(source), map: { files: [path], marks: null }, version };
  };
  const made = new Map<string, Promise<Pushable>>();
  return {
    async ofRuntime(runtime) {
      const [name = "", , build = ""] = runtime.split(" ");
      if (name !== "espruino" && name !== "node") return null;
      const isWide = name === "espruino" && runtime.endsWith(` ${WIDE_RUNTIME}`);
      const kind = name === "node" ? name : `${build} ${isWide}`;
      const program = made.get(kind) ?? (name === "node" ? forNode() : forBoard(isWide, build));
      made.set(kind, program);
      return program;
    },
  };
};
