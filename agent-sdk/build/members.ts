/**
 * Passes over member names: drops methods that nothing names, and shortens our own names. A method
 * costs a board 5 variables and one for each parameter; a name of more than 4 characters costs
 * another, in the class and in every object.
 */
import type { Node } from "acorn";
import { fullAncestor } from "acorn-walk";
import { methodsToFunctions } from "./methods.ts";
import type { Module } from "./modules.ts";
import { applyChanges, type Change, type Named, parsePiece, THIS, type Tree } from "./piece.ts";

const PRIVATE = /\bprivate\s+(?:readonly\s+)?(\w+)/g;
const DECLARED_PUBLIC = /\bdeclare\s+(?:readonly\s+)?(?!private\b|readonly\b)(\w+)/g;

const matches = (source: string, pattern: RegExp): string[] =>
  [...source.matchAll(pattern)].map((match) => match[1] as string);

/** The positions of each property name, and the reasons for or against renaming it. */
interface Places {
  readonly nodes: Node[];
  /** Our code creates a property of this name, so it is not a built-in's. */
  made: boolean;
  /** It also occurs elsewhere than after `this` or in a class. */
  foreign: boolean;
  /** It occurs in a string, by which it might be looked up. */
  said: boolean;
}

const placesOf = (code: string): Map<string, Places> => {
  const places = new Map<string, Places>();
  const at = (name: string): Places => {
    const known = places.get(name) ?? { nodes: [], made: false, foreign: false, said: false };
    places.set(name, known);
    return known;
  };
  fullAncestor(parsePiece(code), (found, _state, ancestors) => {
    const node = found as Tree;
    const parent = ancestors.at(-2) as Tree | undefined;
    if (node.type === "MemberExpression" && !node.computed) {
      const property = node.property as Named;
      const place = at(property.name);
      place.nodes.push(property);
      const object = node.object as Named;
      if (object.type !== "ThisExpression" && object.name !== THIS) place.foreign = true;
      if (parent?.type === "AssignmentExpression" && parent.left === node) place.made = true;
    } else if (node.type === "MethodDefinition" || node.type === "PropertyDefinition") {
      const place = at((node.key as Named).name);
      place.nodes.push(node.key as Node);
      place.made = true;
    } else if (node.type === "Property") {
      if ((node.key as Node).type !== "Identifier" || node.shorthand) {
        at(String((node.key as Named).name)).said = true;
        return;
      }
      const place = at((node.key as Named).name);
      place.nodes.push(node.key as Node);
      place.made = true;
      place.foreign = true;
    } else if (node.type === "Literal" && typeof node.value === "string")
      at(node.value).said = true;
  });
  return places;
};

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/** Two letters that are a keyword, or a member of Espruino's objects. */
const TAKEN = ["at", "do", "if", "in", "of", "on"];

/** `a` to `Z`, then `aa` to `ZZ`, without those that are in use. */
function* shortNames(used: ReadonlySet<string>): Generator<string, never> {
  for (const head of ["", ...LETTERS]) {
    for (const tail of LETTERS) {
      if (!used.has(head + tail)) yield head + tail;
    }
  }
  throw new Error("too many names for two letters");
}

/**
 * Which names are ours: those that TypeScript's `private` guarantees to be internal
 * (private in one of the `sources`, public in none, used only after `this` or in a class);
 * camelCase names of properties that our code creates, because nothing on the wire or in a
 * configuration is written so; and `ours`, which the build lists. `keep`: names that a device
 * program may use.
 */
const isOursIn = (
  places: ReadonlyMap<string, Places>,
  sources: readonly string[],
  keep: ReadonlySet<string>,
  ours: ReadonlySet<string>,
): ((name: string) => boolean) => {
  const open = new Set(sources.flatMap((source) => matches(source, DECLARED_PUBLIC)));
  const privates = new Set(sources.flatMap((source) => matches(source, PRIVATE)));
  return (name) => {
    const place = places.get(name);
    if (place === undefined || place.said || keep.has(name)) return false;
    if (ours.has(name)) return place.made;
    const isPrivate = privates.has(name) && !open.has(name) && !place.foreign;
    return isPrivate || (/[a-z][A-Z]/.test(name) && place.made);
  };
};

/** Turns methods that are private or have names of ours into functions (methods.ts). */
export const freeMethods = (
  code: string,
  modules: readonly Module[],
  keep: ReadonlySet<string>,
  ours: ReadonlySet<string>,
): string => {
  const sources = modules.map(({ source }) => source);
  const classes = modules.flatMap(({ source, body }) =>
    body.flatMap((statement) => {
      const found = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
      if (found?.type !== "ClassDeclaration") return [];
      return [[found.id.name, matches(source.slice(found.start, found.end), PRIVATE)] as const];
    }),
  );
  const privates = new Map(classes);
  return methodsToFunctions(code, {
    isOurs: isOursIn(placesOf(code), sources, keep, ours),
    isPrivate: (of, name) => privates.get(of)?.includes(name) === true,
  });
};

/** Shortens names of ours. */
export const shortenNames = (
  code: string,
  sources: readonly string[],
  keep: ReadonlySet<string>,
  ours: ReadonlySet<string>,
): string => {
  const changes: Change[] = [];
  const places = placesOf(code);
  const free = shortNames(new Set([...places.keys(), ...TAKEN]));
  const isOurs = isOursIn(places, sources, keep, ours);
  const isLong = ([name]: [string, Places]): boolean =>
    isOurs(name) && (name.length > 4 || ours.has(name));
  // The most frequent first: they get one letter.
  const byUse = ([a, one]: [string, Places], [b, other]: [string, Places]): number =>
    other.nodes.length - one.nodes.length || (a < b ? -1 : 1);
  for (const [, { nodes }] of [...places].filter(isLong).sort(byUse)) {
    const short = free.next().value;
    for (const { start, end } of nodes) changes.push({ start, end, text: short });
  }
  return applyChanges(code, changes);
};

/**
 * Drops methods whose names occur nowhere else, or only in methods of the same name, except those
 * in `keep`.
 */
export const dropUnusedMethods = (code: string, keep: ReadonlySet<string>): string => {
  const used = new Set<string>();
  const methods: (Node & { name: string })[] = [];
  fullAncestor(parsePiece(code), (found, _state, ancestors) => {
    const node = found as Tree;
    const nameOf = (method: Tree) => (method.key as { name: string }).name;
    if (node.type === "MethodDefinition") methods.push({ ...found, name: nameOf(node) });
    if (node.type !== "MemberExpression" || node.computed) return;
    const { name } = node.property as { name: string };
    const isWithin = (outer: Node) =>
      outer.type === "MethodDefinition" && nameOf(outer as Tree) === name;
    if (!ancestors.some(isWithin)) used.add(name);
  });
  const unused = methods.filter(
    ({ name }) => name !== "constructor" && !used.has(name) && !keep.has(name),
  );
  if (unused.length === 0) return code;
  const changes = unused.map(({ start, end }) => ({ start, end, text: "" }));
  return dropUnusedMethods(applyChanges(code, changes), keep);
};
