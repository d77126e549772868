/**
 * The boundaries lint: `node scripts/boundaries/check.ts [ROOT]`. Reads every source of the
 * workspace and reports where one breaks a rule of `rules.ts`, by which chain of imports, and why
 * that rule exists. Exit code 0 if all rules hold, 1 if one does not.
 */
import { globSync, readFileSync } from "node:fs";
import { matchesGlob, resolve, sep } from "node:path";
import { fileCycles, folderCycles } from "./cycles.ts";
import {
  buildGraph,
  type Edge,
  type Files,
  type Graph,
  isSource,
  packageOf,
  type Target,
} from "./graph.ts";
import { findImpurities } from "./purity.ts";
import {
  type ConfinedRule,
  type CyclesRule,
  IMPURE_GLOBALS,
  type PackagesRule,
  type PureRule,
  type ReachRule,
  RULES,
  type Rule,
  TEST_FILES,
} from "./rules.ts";

export interface Violation {
  rule: string;
  path: string;
  line: number;
  what: string;
  /**
   * From a file that the rule covers to the one it must not reach; each as `file:line` except the
   * last.
   */
  chain: string[];
  reason: string;
}

export function checkBoundaries(files: Files, rules: readonly Rule[] = RULES): Violation[] {
  const graph = buildGraph(files);
  const violations: Violation[] = graph.broken.map(({ path, line, message }) => ({
    rule: "sources can be read",
    path,
    line,
    what: message,
    chain: [],
    reason: "what cannot be parsed cannot be checked",
  }));
  for (const rule of rules) {
    if (rule.kind === "reach") violations.push(...checkReach(graph, rule));
    else if (rule.kind === "pure") violations.push(...checkPure(graph, rule));
    else if (rule.kind === "confined") violations.push(...checkConfined(graph, rule));
    else if (rule.kind === "packages") violations.push(...checkPackages(graph, rule));
    else violations.push(...checkCycles(graph, rule));
  }
  return violations;
}

function checkReach(graph: Graph, rule: ReachRule): Violation[] {
  const violations: Violation[] = [];
  const isForbidden = (path: string) => matches(path, rule.mayNotReach);
  walk(graph, startOf(graph, rule.files), (edge, chain) => {
    if (rule.late === true && edge.how === "late") return false;
    if (edge.target.kind === "unknown" && rule.late !== true) {
      violations.push(found(rule, chain, `cannot be followed: ${edge.target.why}`));
    }
    if (edge.target.kind !== "file" && edge.target.kind !== "node") return false;
    const reached = edge.target.kind === "file" ? edge.target.path : edge.target.name;
    if (!isForbidden(reached)) return edge.target.kind === "file";
    violations.push(found(rule, chain, `reaches ${reached}`));
    return false;
  });
  return violations;
}

function checkPure(graph: Graph, rule: PureRule): Violation[] {
  const violations: Violation[] = [];
  const start = startOf(graph, rule.files);
  const inside = (path: string) => matches(path, rule.files) || matches(path, rule.mayReach);
  const reached = walk(graph, start, (edge, chain) => {
    const { target } = edge;
    if (target.kind === "file" && !matches(target.path, TEST_FILES)) {
      if (inside(target.path)) return true;
      if (matches(target.path, rule.notFollowed)) return false;
    }
    violations.push(found(rule, chain, `loads ${describe(target)}`));
    return false;
  });
  for (const [path, chain] of reached) {
    const module = graph.modules.get(path);
    if (!module) continue;
    for (const { line, what } of findImpurities(module.program, IMPURE_GLOBALS)) {
      const way = chain.length > 0 ? [...chain.map(placeOf), path] : [];
      violations.push({ rule: rule.name, path, line, what, chain: way, reason: rule.reason });
    }
  }
  return violations;
}

function checkConfined(graph: Graph, rule: ConfinedRule): Violation[] {
  const isAllowed = ({ specifier, target }: Edge): boolean =>
    target.kind === "node" ||
    rule.mayLoad.includes(specifier) ||
    (target.kind === "file" && matches(target.path, rule.files));
  return [...graph.modules.values()]
    .flatMap(({ edges }) => edges)
    .filter((edge) => matches(edge.from, rule.files) && !isAllowed(edge))
    .map((edge) => found(rule, [edge], `loads ${describe(edge.target)}`));
}

/** Of every import, types included, that leaves its package for another of the workspace. */
function checkPackages(graph: Graph, rule: PackagesRule): Violation[] {
  const violations: Violation[] = [];
  for (const edge of [...graph.modules.values()].flatMap(({ edges }) => edges)) {
    const { from, specifier, target } = edge;
    const named = /^@blindrelay\/([^/]+)/.exec(specifier)?.[1];
    const isPath = target.kind === "file" || target.kind === "asset";
    const other = named ?? (isPath ? packageOf(target.path) : undefined);
    const own = packageOf(from);
    const allowed = rule.mayImport[own];
    if (!other || other === own || !allowed) continue;
    if (!allowed.includes(other)) {
      const list = allowed.length > 0 ? allowed.join(", ") : "no other package";
      violations.push(found(rule, [edge], `${own} imports ${other}; it may import ${list}`));
    } else if (specifier.startsWith(".") && !matches(from, rule.byPath)) {
      const what = `a path into ${other}; import it by its name, as its users do`;
      violations.push(found(rule, [edge], what));
    }
  }
  return violations;
}

function checkCycles(graph: Graph, rule: CyclesRule): Violation[] {
  const keep = (path: string) => !matches(path, TEST_FILES);
  const cycles =
    rule.of === "files" ? fileCycles(graph, keep) : folderCycles(graph, keep, rule.openTops ?? []);
  return cycles.map(({ names, edges }) => found(rule, edges, `a cycle: ${names.join(" -> ")}`));
}

const startOf = (graph: Graph, globs: string[]): string[] =>
  [...graph.modules.keys()].filter((path) => matches(path, globs) && !matches(path, TEST_FILES));

/**
 * Breadth-first from all of `start` at once, so a chain is the shortest one and begins at the last
 * file of `start` on it. `enter` gets every import with the chain that leads to it, and returns
 * whether to continue. Returns every file entered with its chain.
 */
function walk(
  graph: Graph,
  start: string[],
  enter: (edge: Edge, chain: Edge[]) => boolean,
): Map<string, Edge[]> {
  const chains = new Map<string, Edge[]>(start.map((path) => [path, []]));
  for (const [path, chain] of chains) {
    for (const edge of graph.modules.get(path)?.edges ?? []) {
      if (edge.typeOnly) continue;
      const longer = [...chain, edge];
      if (!enter(edge, longer) || edge.target.kind !== "file") continue;
      if (!chains.has(edge.target.path)) chains.set(edge.target.path, longer);
    }
  }
  return chains;
}

function found(rule: Rule, chain: Edge[], what: string): Violation {
  const [first] = chain as [Edge, ...Edge[]];
  const last = chain.at(-1) as Edge;
  const way = [...chain.map(placeOf), describe(last.target)];
  return {
    rule: rule.name,
    path: first.from,
    line: first.line,
    what,
    chain: way,
    reason: rule.reason,
  };
}

const placeOf = (edge: Edge): string => `${edge.from}:${edge.line}`;

function describe(target: Target): string {
  if (target.kind === "node") return target.name;
  if (target.kind === "npm") return `the npm package ${target.name}`;
  if (target.kind === "unknown") return `something unknown (${target.why})`;
  return target.path;
}

const matches = (path: string, globs: readonly string[]): boolean =>
  globs.some((glob) => matchesGlob(path, glob));

export function formatViolation(violation: Violation): string {
  const { rule, path, line, what, chain, reason } = violation;
  const way = chain.length > 2 ? `    by way of ${chain.join(" -> ")}\n` : "";
  return `${path}:${line}  ${what}\n${way}    ${rule}: ${reason}\n`;
}

/**
 * All sources and package.json files of the workspace's packages; `folders` that are not there are
 * left out.
 */
export function readWorkspace(root: string, folders: readonly string[]): Map<string, string> {
  const globs = folders.map((folder) => `${folder}/**/*.{ts,tsx,mts,js,mjs,json}`);
  const exclude = ["**/node_modules", "**/dist"];
  const paths = globSync(globs, { cwd: root, exclude }).map((path) => path.replaceAll(sep, "/"));
  const read = paths.filter((path) => isSource(path) || path.endsWith("/package.json"));
  return new Map(read.map((path) => [path, readFileSync(resolve(root, path), "utf8")]));
}

if (import.meta.main) {
  const root = resolve(process.argv[2] ?? resolve(import.meta.dirname, "../.."));
  const packages = RULES.flatMap((rule) =>
    rule.kind === "packages" ? Object.keys(rule.mayImport) : [],
  );
  const files = readWorkspace(root, packages);
  const violations = checkBoundaries(files);
  for (const violation of violations) console.error(formatViolation(violation));
  const sources = [...files.keys()].filter(isSource).length;
  const verdict = violations.length === 0 ? "all hold" : `${violations.length} violations`;
  console.log(`boundaries: ${sources} files, ${RULES.length} rules, ${verdict}`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
