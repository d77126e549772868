/**
 * Import circles, of files and of rooms (the folders of a package). Types count: a type in the
 * wrong file ties two files together just as a value does, for whoever reads or moves them.
 */
import type { Edge, Graph } from "./graph.ts";

/** One edge of a circle for each place to look at. */
export interface Circle {
  /**
   * The names of the files or rooms, in the order of the circle, the first one again at the end.
   */
  names: string[];
  edges: Edge[];
}

/** Circles of files; at most one is named for each set of files that reach each other. */
export const fileCircles = (graph: Graph, keep: (path: string) => boolean): Circle[] =>
  circles(importsOf(graph, keep), (path) => path);

/**
 * Circles of rooms: two folders of one package that import each other, directly or through others.
 */
export const roomCircles = (graph: Graph, keep: (path: string) => boolean): Circle[] =>
  circles(importsOf(graph, keep), roomOf);

/**
 * `relay-server/src/http/auth.ts` -> `relay-server/src/http`; a file right under `src` is its own
 * room.
 */
export const roomOf = (path: string): string => {
  const parts = path.split("/");
  const depth = parts[1] === "src" ? 3 : 2;
  return parts.slice(0, Math.max(depth, 1)).join("/");
};

function importsOf(graph: Graph, keep: (path: string) => boolean): Edge[] {
  const edges: Edge[] = [];
  for (const [path, { edges: own }] of graph.modules) {
    if (!keep(path)) continue;
    for (const edge of own) {
      // `new URL("./worker.ts", import.meta.url)` names a program that is started, not one that is
      // imported.
      if (edge.target.kind === "file" && edge.how === "import" && keep(edge.target.path)) {
        edges.push(edge);
      }
    }
  }
  return edges;
}

function circles(edges: Edge[], nameOf: (path: string) => string): Circle[] {
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
  const found: Circle[] = [];
  for (const start of [...next.keys()].sort()) {
    if (done.has(start)) continue;
    const circle = shortestBack(start, next, done);
    if (circle === null) continue;
    found.push(circle);
    for (const name of circle.names) done.add(name);
  }
  return found;
}

/** The shortest way from `start` back to itself; breadth first. */
function shortestBack(
  start: string,
  next: Map<string, Map<string, Edge>>,
  leaveOut: Set<string>,
): Circle | null {
  const ways = new Map<string, Edge[]>([[start, []]]);
  const order: string[] = [start];
  for (const name of order) {
    const way = ways.get(name) as Edge[];
    for (const [to, edge] of next.get(name) ?? []) {
      if (to === start) return named(start, [...way, edge], next);
      if (ways.has(to) || leaveOut.has(to)) continue;
      ways.set(to, [...way, edge]);
      order.push(to);
    }
  }
  return null;
}

function named(start: string, edges: Edge[], next: Map<string, Map<string, Edge>>): Circle {
  const names = [start];
  for (const edge of edges) {
    const last = names.at(-1) as string;
    for (const [to, known] of next.get(last) ?? []) {
      if (known === edge) {
        names.push(to);
        break;
      }
    }
  }
  return { names, edges };
}
