/**
 * Import cycles, of files and of a package's folders. Types count: a type in the
 * wrong file ties two files together just as a value does, for anyone who reads or moves them.
 */
import { dirname } from "node:path";
import type { Edge, Graph } from "./graph.ts";

/** One edge of a cycle for each place to look at. */
interface Cycle {
  /**
   * The names of the files or folders, in the order of the cycle, the first one again at the end.
   */
  names: string[];
  edges: Edge[];
}

/** Cycles of files; at most one is named for each set of files that reach each other. */
export const fileCycles = (graph: Graph, keep: (path: string) => boolean): Cycle[] =>
  cycles(importsOf(graph, keep), (path) => path);

/**
 * Cycles of folders: two folders of one package that import each other, directly or through others.
 * A folder right under `src` counts with all that is in it, and each folder in it by itself, `src`
 * included; of the folders `openTops` each file counts by itself.
 */
export const folderCycles = (
  graph: Graph,
  keep: (path: string) => boolean,
  openTops: readonly string[],
): Cycle[] => {
  const edges = importsOf(graph, keep);
  const folder = (path: string) => (openTops.includes(dirname(path)) ? path : folderOf(path));
  const found = [...cycles(edges, topFolderOf), ...cycles(edges, folder)];
  const byNames = new Map(found.map((cycle) => [cycle.names.join(), cycle]));
  return [...byNames.values()];
};

/** `relay-server/src/http/routes/auth.ts` -> `relay-server/src/http`. */
const topFolderOf = (path: string): string => path.split("/").slice(0, topDepth(path)).join("/");

/** A file right under a package or its `src` counts as its own folder. */
const topDepth = (path: string): number => (path.split("/")[1] === "src" ? 3 : 2);

/** `relay-server/src/http/routes/auth.ts` -> `relay-server/src/http/routes`. */
const folderOf = (path: string): string => (path.split("/").length > 2 ? dirname(path) : path);

function importsOf(graph: Graph, keep: (path: string) => boolean): Edge[] {
  const edges: Edge[] = [];
  for (const [path, { edges: own }] of graph.modules) {
    if (!keep(path)) continue;
    for (const edge of own) {
      // `new URL("./worker.ts", import.meta.url)` names a program that is started, not one that is
      // imported.
      if (edge.target.kind === "file" && edge.how !== "start" && keep(edge.target.path)) {
        edges.push(edge);
      }
    }
  }
  return edges;
}

function cycles(edges: Edge[], nameOf: (path: string) => string): Cycle[] {
  const next = new Map<string, Map<string, Edge>>();
  for (const edge of edges) {
    if (edge.target.kind !== "file") continue;
    const [from, to] = [nameOf(edge.from), nameOf(edge.target.path)];
    if (from === to && nameOf(edge.from) !== edge.from) continue;
    const own = next.get(from) ?? new Map<string, Edge>();
    if (!own.has(to)) own.set(to, edge);
    next.set(from, own);
  }
  const done = new Set<string>();
  const found: Cycle[] = [];
  for (const start of [...next.keys()].sort()) {
    if (done.has(start)) continue;
    const cycle = shortestBack(start, next, done);
    if (cycle === null) continue;
    found.push(cycle);
    for (const name of cycle.names) done.add(name);
  }
  return found;
}

/** The shortest way from `start` back to itself; breadth first. */
function shortestBack(
  start: string,
  next: Map<string, Map<string, Edge>>,
  leaveOut: Set<string>,
): Cycle | null {
  const ways = new Map<string, Cycle>([[start, { names: [start], edges: [] }]]);
  for (const [name, { names, edges }] of ways) {
    for (const [to, edge] of next.get(name) ?? []) {
      const way = { names: [...names, to], edges: [...edges, edge] };
      if (to === start) return way;
      if (!ways.has(to) && !leaveOut.has(to)) ways.set(to, way);
    }
  }
  return null;
}
