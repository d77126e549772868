/**
 * The device programs of a scenario, by their names in the plan: the path as written, or
 * `kind:NAME`.
 */
import { relative, resolve } from "node:path";
import type { RawPortEdge } from "@blindrelay/agent-sdk/bridge";
import { bridge } from "../devices/bridge.ts";
import { busy } from "../devices/busy.ts";
import { KINDS } from "../devices/kinds.ts";
import { shown } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { type Globals, type LoadedProgram, loadProgram, parseProgram } from "./program.ts";

/**
 * Reads every program that the scenario names, and that is not in `programs` yet. Throws a
 * ScenarioError if the virtual world cannot run one, and a Failure if it is no file.
 */
export function loadPrograms(
  scenario: Scenario,
  folder: string,
  programs: Map<string, LoadedProgram> = bundledPrograms(),
): Map<string, LoadedProgram> {
  for (const path of programPaths(scenario)) {
    if (programs.has(path)) continue;
    const file = resolve(folder, path);
    programs.set(path, loadProgram(file, shown(file)));
  }
  return programs;
}

/** The same from texts stored in a report. */
export function restorePrograms(
  scenario: Scenario,
  sources: Readonly<Record<string, string>>,
): Map<string, LoadedProgram> {
  const programs = bundledPrograms();
  for (const path of programPaths(scenario)) {
    const source = sources[path];
    if (source === undefined) throw new Error(`the report does not contain the program ${path}`);
    programs.set(path, parseProgram(source, path));
  }
  return programs;
}

/** The texts that a report stores. */
export function sourcesOf(
  scenario: Scenario,
  programs: ReadonlyMap<string, LoadedProgram>,
): Record<string, string> {
  const paths = [...programPaths(scenario)];
  return Object.fromEntries(paths.map((path) => [path, programs.get(path)?.source ?? ""]));
}

/** `path` as it would be written in a scenario in `folder`. */
export function relativeTo(folder: string, path: string): string {
  const near = relative(folder, resolve(path));
  return near.startsWith(".") ? near : `./${near}`;
}

export function programPaths(scenario: Scenario): Set<string> {
  const paths = new Set<string>();
  for (const { program } of scenario.devices) if (program !== undefined) paths.add(program);
  for (const { program } of scenario.faults ?? []) if (program !== undefined) paths.add(program);
  if (scenario.stubs !== undefined) paths.add(scenario.stubs);
  return paths;
}

function bundledPrograms(): Map<string, LoadedProgram> {
  const bundled = (file: string, instantiate: LoadedProgram["instantiate"]) =>
    [`kind:${file}`, { file, source: "", isAsync: file === "bridge", instantiate }] as const;
  return new Map([
    ...KINDS.map(({ name, program }) => bundled(name, () => program)),
    bundled("busy", (globals) => busy(globals.setInterval, globals.Date.now)),
    bundled("bridge", (globals) => bridge(edgeOf(globals))),
  ]);
}

function edgeOf(globals: Globals): RawPortEdge {
  const { setTimeout: set, clearTimeout: clear, performance, crypto, Date: Dates } = globals;
  return {
    timer: { now: (performance as Performance).now, set: (ms, fn) => set(fn, ms), clear },
    random: (length) => (crypto as Crypto).getRandomValues(new Uint8Array(length)),
    date: () => new Dates().toISOString(),
  };
}
