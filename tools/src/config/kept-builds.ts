/**
 * Where the programs that were flashed and pushed from here have their sources: a file for each
 * build, named as a device names its program, in a folder beside the profile. It holds paths and
 * places, and no code.
 */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import type { SourceMap } from "@blindrelay/agent-sdk/board";
import { giveToOwner, makeFolder } from "@blindrelay/protocol/file-owner";
import { writeWholeFile } from "../base/whole-file.ts";

/** The oldest are removed: whoever works on a program flashes it many times. */
const MAX_BUILDS = 64;
/** Agents that are remembered for each, the latest. A push to more is found by its name. */
const MAX_AGENTS = 100;
const NAME = /^[0-9a-f]{16}\.json$/;

interface KeptBuild {
  readonly map: SourceMap;
  /** Agents that got it, the latest last, and when each did (ms). */
  readonly agents: readonly (readonly [agentId: string, at: number])[];
  /** The port that it was flashed through, as the user called it; null for a push. */
  readonly port: string | null;
}

/** A folder that cannot be read has none, and a broken file is none. */
const readAll = (folder: string): KeptBuild[] => {
  try {
    return readdirSync(folder).flatMap((name) => {
      const build = NAME.test(name) ? readBuild(folder, name.slice(0, 16)) : null;
      return build === null ? [] : [build];
    });
  } catch {
    return [];
  }
};

const readBuild = (folder: string, id: string): KeptBuild | null => {
  try {
    const build = JSON.parse(readFileSync(join(folder, `${id}.json`), "utf8")) as KeptBuild;
    return Array.isArray(build.map.files) && Array.isArray(build.agents) ? build : null;
  } catch {
    return null;
  }
};

const removeOldest = (folder: string): void => {
  const files = readdirSync(folder).filter((name) => NAME.test(name));
  const dated = files.map((name) => [statSync(join(folder, name)).mtimeMs, name] as const);
  const old = dated.sort(([a], [b]) => b - a).slice(MAX_BUILDS);
  for (const [, name] of old) rmSync(join(folder, name), { force: true });
};

interface Given {
  readonly agentId: string;
  readonly port: string | null;
}

/**
 * Keeps a build. `given`: who got it; null: nobody has it for sure. `id`: the first 16 digits of
 * the SHA-256 of its text. A folder that cannot be written is no reason to fail: errors then have
 * the places that the device names.
 */
export const keepBuild = (
  folder: string | null,
  id: string,
  map: SourceMap,
  given: Given | null,
): void => {
  if (folder === null) return;
  const before = readBuild(folder, id);
  const others = before?.agents.filter(([agentId]) => agentId !== given?.agentId) ?? [];
  const agents = given === null ? others : [...others, [given.agentId, Date.now()]];
  const files = map.files.map((path) => resolve(path));
  const port = given?.port ?? before?.port ?? null;
  const build = { map: { ...map, files }, agents: agents.slice(-MAX_AGENTS), port };
  const path = join(folder, `${id}.json`);
  try {
    makeFolder(folder);
    writeWholeFile(path, JSON.stringify(build));
    giveToOwner(path, folder);
    removeOldest(folder);
  } catch {
    // As said above.
  }
};

const latest = (builds: readonly KeptBuild[], agentId: string): SourceMap | null => {
  const at = ({ agents }: KeptBuild): number =>
    agents.find(([other]) => other === agentId)?.[1] ?? 0;
  const [newest] = [...builds].sort((a, b) => at(b) - at(a));
  return newest === undefined || at(newest) === 0 ? null : newest.map;
};

/** `id`: what the agent says that it runs; "": nothing, so what it got last. */
export const buildOf = (folder: string | null, agentId: string, id: string): SourceMap | null => {
  if (folder === null) return null;
  if (id === "") return latest(readAll(folder), agentId);
  return /^[0-9a-f]{16}$/.test(id) ? (readBuild(folder, id)?.map ?? null) : null;
};

/** What the board that was last flashed through this port got last. */
export const buildOnPort = (folder: string | null, port: string): SourceMap | null => {
  if (folder === null) return null;
  const builds = readAll(folder);
  const flashed = builds
    .filter((build) => build.port === port)
    .flatMap(({ agents }) => agents)
    .sort(([, a], [, b]) => b - a);
  const agentId = flashed[0]?.[0];
  return agentId === undefined ? null : latest(builds, agentId);
};

/** A path as the user would type it. */
export const shownPath = (path: string): string => {
  const here = relative(process.cwd(), path);
  return here === "" || here.startsWith("..") || isAbsolute(here) ? path : here;
};
