/**
 * A device program in the form that each kind of agent needs, read and checked once for many
 * agents.
 */
import { statSync } from "node:fs";
import { describeRefusal, isSyntax, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { byteCodeBuild } from "@blindrelay/agent-sdk/embedded/push";
import { Failure } from "@blindrelay/protocol/command-line";
import { printStatus } from "../base/output.ts";
import { readBytes } from "../base/text-file.ts";
import { carryModules, MODULES_FIX } from "../flash/modules.ts";
import { readProgram, readSource } from "../flash/program.ts";
import type { Programs, Pushable } from "./push-one.ts";

/** The end of what a board with Unicode strings calls itself (agent-sdk/src/espruino/agent.ts). */
const WIDE_RUNTIME = "unicode";
/** What an agent on any board has. */
const ANY = { modules: ["Storage", "crypto"] };

const wants = (build: string): string =>
  `the device takes byte code of build ${build}: compile it with that firmware's compiler`;

/**
 * `version`: reported to the relay; `folder`: of modules. Throws a Failure if there is no such
 * program.
 */
export const programsFor = (
  path: string,
  version: string | null,
  folder: string | undefined,
): Programs => {
  // What is no file, such as a pipe, can be read once only, and is text.
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const bytes = isFile ? readBytes(path, "the device program") : new Uint8Array();
  const compiledFor = byteCodeBuild(bytes);
  const source = compiledFor === null ? readSource(path) : "";
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
  const byteCode = (build: string): Pushable => {
    if (compiledFor === null) throw new Failure("usage", `${path} is text, and ${wants(build)}`);
    if (compiledFor !== build)
      throw new Failure(
        "usage",
        `${path} is byte code of build ${compiledFor}, and ${wants(build)}`,
      );
    return { bytes, map: { files: [path], marks: null }, version };
  };
  const made = new Map<string, Promise<Pushable>>();
  return {
    async ofRuntime(runtime, engine) {
      if (engine !== undefined) return byteCode(engine);
      const [name = "", , build = ""] = runtime.split(" ");
      if (name !== "espruino" && name !== "node") return null;
      if (compiledFor !== null)
        throw new Failure("usage", `${path} is byte code, and ${name} takes the program's text`);
      const isWide = name === "espruino" && runtime.endsWith(` ${WIDE_RUNTIME}`);
      const kind = name === "node" ? name : `${build} ${isWide}`;
      const program = made.get(kind) ?? (name === "node" ? forNode() : forBoard(isWide, build));
      made.set(kind, program);
      return program;
    },
  };
};
