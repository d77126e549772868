/**
 * Device programs with stubs in the live world: many devices share a process and each has its own
 * hardware, so such a program's text runs as a function of its globals, once for each device.
 */
import { createRequire, isBuiltin } from "node:module";
import { pathToFileURL } from "node:url";
import type { Agent, Program } from "@blindrelay/agent-sdk";
import bundled, { type StubbedDevice } from "@blindrelay/agent-sdk/stubs";
import {
  asFunctionBody,
  parseProgramText,
  readProgramFile,
  type Tree,
} from "../scenario/program-file.ts";
import { usesHardware } from "../virtual/stubs.ts";

type MakeStubs = (device: StubbedDevice) => Record<string, unknown>;

/** Null: the program needs no stubs, and is imported as it is. */
export const stubbedProgram = async (
  file: string,
  stubs: string | undefined,
): Promise<Program | null> => {
  const source = readProgramFile(file, file);
  if (stubs === undefined && !usesHardware(source)) return null;
  const { text, tree } = parseProgramText(source, file);
  const imports = new Map<string, unknown>();
  for (const { type, source: from } of tree.body as Tree[]) {
    if (type !== "ImportDeclaration") continue;
    const name = String((from as Tree).value);
    const path = isBuiltin(name) ? name : createRequire(file).resolve(name);
    imports.set(name, await import(isBuiltin(name) ? name : pathToFileURL(path).href));
  }
  const own =
    stubs === undefined
      ? undefined
      : ((await import(pathToFileURL(stubs).href)).default as MakeStubs);
  const body = asFunctionBody(text, tree);
  const begun = performance.now();
  return (agent: Agent) => {
    const device: StubbedDevice = {
      id: agent.name,
      group: agent.name.replace(/-\d+$/, ""),
      boots: 1,
      now: () => performance.now() - begun,
      random: Math.random,
      log: () => undefined,
    };
    const globals = { ...bundled(device), ...own?.(device) };
    const exported: { default?: Program } = {};
    const run = new Function(
      ...["__x", "__imports", ...Object.keys(globals)],
      `return (function () { "use strict"; ${body}\n}).call(undefined);`,
    );
    run(exported, imports, ...Object.values(globals));
    exported.default?.(agent);
  };
};
