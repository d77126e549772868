/**
 * The import graph of the workspace, from texts alone: types are stripped, the rest is parsed, and
 * every way of loading another file becomes an edge. Nothing is executed and no node_modules is
 * read.
 */
import { builtinModules, stripTypeScriptTypes } from "node:module";
import { posix } from "node:path";
import { type Node, type Program, parse } from "acorn";
import { simple } from "acorn-walk";
import { transformSync } from "esbuild";

/** Path from the root, with forward slashes, to text: sources and the packages' package.json. */
export type Files = ReadonlyMap<string, string>;

export type Target =
  | { kind: "file"; path: string }
  | { kind: "node"; name: string }
  | { kind: "npm"; name: string }
  /** Something that is not a source: JSON, a WebAssembly file, a page. */
  | { kind: "asset"; path: string }
  /** What this loads is unknown: a missing file, an unknown entry point, a computed name. */
  | { kind: "unknown"; why: string };

export interface Edge {
  from: string;
  line: number;
  /** As written; empty when it is computed. */
  specifier: string;
  /** Erased before the program runs. */
  typeOnly: boolean;
  /**
   * `late`: by an `import()`, so only once it is used. A `start` names a program by its URL: it is
   * loaded, but by another thread or process.
   */
  how: "import" | "late" | "start";
  target: Target;
}

export interface Module {
  path: string;
  program: Program;
  edges: Edge[];
}

export interface Graph {
  modules: Map<string, Module>;
  /** Files that could not be parsed, with the parser's message. */
  broken: { path: string; line: number; message: string }[];
}

const SCOPE = "@blindrelay/";
const SOURCE = /\.(tsx?|mts|js|mjs)$/;
const BUILTINS = new Set(builtinModules);

export const isSource = (path: string): boolean => SOURCE.test(path) && !path.endsWith(".d.ts");

/** The package (top folder) of a path. */
export const packageOf = (path: string): string => path.slice(0, path.indexOf("/"));

export function buildGraph(files: Files): Graph {
  const graph: Graph = { modules: new Map(), broken: [] };
  const entryPoints = readEntryPoints(files);
  for (const [path, text] of files) {
    if (!isSource(path)) continue;
    try {
      const program = parseSource(path, text);
      const edges = [...valueEdges(path, program), ...typeEdges(path, text)].map((edge) => ({
        ...edge,
        target: resolve(edge, files, entryPoints),
      }));
      graph.modules.set(path, { path, program, edges });
    } catch (error) {
      const { message, loc } = error as Error & { loc?: { line: number } };
      graph.broken.push({ path, line: loc?.line ?? 1, message: message.split("\n")[0] ?? "" });
    }
  }
  return graph;
}

/** Types become blanks, so lines and columns stay those of the file, unless it has JSX. */
function parseSource(path: string, text: string): Program {
  const strip = path.endsWith(".tsx") ? stripJsx : /\.m?ts$/.test(path) ? stripTypes : String;
  return parse(strip(text), {
    ecmaVersion: "latest",
    sourceType: "module",
    locations: true,
    allowHashBang: true,
  });
}

const stripTypes = (text: string): string => stripTypeScriptTypes(text, { mode: "strip" });

const stripJsx = (text: string): string =>
  transformSync(text, {
    loader: "tsx",
    jsx: "transform",
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  }).code;

type Found = Omit<Edge, "target">;

function valueEdges(from: string, program: Program): Found[] {
  const edges: Found[] = [];
  const add = (node: Node, source: Node | null | undefined, how: Edge["how"] = "import") => {
    const value = source ? literal(source) : undefined;
    edges.push({
      from,
      line: lineOf(node),
      specifier: value ?? "",
      typeOnly: false,
      how,
    });
  };
  simple(program, {
    ImportDeclaration: (node) => add(node, node.source),
    ExportAllDeclaration: (node) => add(node, node.source),
    ExportNamedDeclaration: (node) => {
      if (node.source) add(node, node.source);
    },
    ImportExpression: (node) => add(node, node.source, "late"),
    CallExpression: (node) => {
      const isRequire = node.callee.type === "Identifier" && node.callee.name === "require";
      if (isRequire && node.arguments.length === 1) add(node, node.arguments[0]);
    },
    // `new Worker(new URL("./worker.ts", import.meta.url))` and `fork(new URL(…))` load a file too.
    NewExpression: (node) => {
      const [path, base] = node.arguments;
      const isUrl = node.callee.type === "Identifier" && node.callee.name === "URL";
      if (!isUrl || !path || base?.type !== "MemberExpression") return;
      if (base.object.type !== "MetaProperty") return;
      const value = literal(path);
      if (value !== undefined && isSource(value)) {
        const specifier = value.startsWith(".") ? value : `./${value}`;
        edges.push({ from, line: lineOf(node), specifier, typeOnly: false, how: "start" });
      }
    },
  });
  return edges;
}

/**
 * `import type`, `export type … from` and `import("…").T`: gone once stripped, so found in the
 * text.
 */
function typeEdges(from: string, text: string): Found[] {
  if (!/\.(m?ts|tsx)$/.test(from)) return [];
  const edges: Found[] = [];
  const patterns = [
    /^[ \t]*(?:import|export)\s+type\b[^;'"]*?\bfrom\s*["']([^"']+)["']/gm,
    /(?:[:=<|&(,]|\bextends|\bas|\bsatisfies)\s*(?:typeof\s+)?import\(\s*["']([^"']+)["']\s*\)\s*\./g,
  ];
  for (const pattern of patterns) {
    for (const match of text.matchAll(pattern)) {
      const line = text.slice(0, match.index).split("\n").length;
      edges.push({ from, line, specifier: match[1] ?? "", typeOnly: true, how: "import" });
    }
  }
  return edges;
}

function literal(node: Node): string | undefined {
  const found = node as Node & { value?: unknown; quasis?: { value: { cooked?: string } }[] };
  if (node.type === "Literal" && typeof found.value === "string") return found.value;
  if (node.type === "TemplateLiteral" && found.quasis?.length === 1)
    return found.quasis[0]?.value.cooked;
  return undefined;
}

export const lineOf = (node: Node): number => node.loc?.start.line ?? 1;

/** Package name to its `exports`, as the workspace resolves them. */
type EntryPoints = Map<string, { folder: string; exports: Record<string, unknown> }>;

function readEntryPoints(files: Files): EntryPoints {
  const entryPoints: EntryPoints = new Map();
  for (const [path, text] of files) {
    if (!/^[^/]+\/package\.json$/.test(path)) continue;
    const { name, exports } = JSON.parse(text) as { name: string; exports?: unknown };
    const table = typeof exports === "string" ? { ".": exports } : (exports ?? {});
    entryPoints.set(name, { folder: packageOf(path), exports: table as Record<string, unknown> });
  }
  return entryPoints;
}

function resolve(edge: Found, files: Files, entryPoints: EntryPoints): Target {
  const { specifier } = edge;
  if (specifier === "") return { kind: "unknown", why: "the name is computed" };
  if (specifier.startsWith("node:")) return { kind: "node", name: specifier };
  if (specifier.startsWith(".")) {
    return resolveFile(posix.join(posix.dirname(edge.from), specifier), files);
  }
  if (specifier.startsWith(SCOPE)) return resolvePackage(specifier, files, entryPoints);
  const [first = "", second = ""] = specifier.split("/");
  if (BUILTINS.has(specifier) || BUILTINS.has(first)) {
    return { kind: "node", name: `node:${specifier}` };
  }
  return { kind: "npm", name: first.startsWith("@") ? `${first}/${second}` : first };
}

function resolveFile(path: string, files: Files): Target {
  if (!SOURCE.test(path)) return { kind: "asset", path };
  if (files.has(path)) return { kind: "file", path };
  const typescript = path.replace(/js$/, "ts");
  if (files.has(typescript)) return { kind: "file", path: typescript };
  return { kind: "unknown", why: `${path} is not there` };
}

function resolvePackage(specifier: string, files: Files, entryPoints: EntryPoints): Target {
  const [scope = "", name = "", ...rest] = specifier.split("/");
  const entry = entryPoints.get(`${scope}/${name}`);
  if (!entry) return { kind: "unknown", why: `there is no package ${scope}/${name}` };
  const wanted = rest.length > 0 ? `./${rest.join("/")}` : ".";
  for (const [key, value] of Object.entries(entry.exports)) {
    const [head = "", tail] = key.split("*");
    const matches =
      tail === undefined ? key === wanted : wanted.startsWith(head) && wanted.endsWith(tail);
    if (!matches) continue;
    const star = tail === undefined ? "" : wanted.slice(head.length, wanted.length - tail.length);
    const file = firstPath(value)?.replace("*", star);
    if (file) return resolveFile(posix.join(entry.folder, file), files);
  }
  return { kind: "unknown", why: `${scope}/${name} has no entry point ${wanted}` };
}

/** Of a conditional export the first path; the workspace itself has only plain ones. */
function firstPath(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const path = firstPath(inner);
    if (path) return path;
  }
  return undefined;
}
