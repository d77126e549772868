/**
 * What a device program promises: an expression over what it exposes (`agent.expose`), such as
 * `state.open + state.closed == 1`, or a function of all that it exposes. A function of a scenario
 * in TypeScript becomes its source text, which a report can store.
 */
import { parseExpressionAt } from "acorn";
import { type Tree, walk } from "./tree.ts";

export interface ParsedInvariant {
  /** The names that a device must expose; of a function none. */
  readonly names: readonly string[];
  /** A function of these names in this order, or of everything exposed and `{ id, group }`. */
  readonly source: string;
}

/** What an expression may name besides what devices expose. */
const KNOWN = new Set(
  "Math JSON Number String Boolean Array Object undefined NaN Infinity isNaN isFinite".split(" "),
);
const REFUSED = /^(Assignment|Update|Await|Yield|Import|New|Class|This|MetaProperty|Tagged)/;

/** A module's names: its function is made in strict code. */
const OPTIONS = { ecmaVersion: "latest", sourceType: "module" } as const;

export function parseInvariant(
  text: string,
  whose = "a device exposes",
): ParsedInvariant | { problem: string } {
  let tree: Tree;
  try {
    tree = parseExpressionAt(text, 0, OPTIONS) as unknown as Tree;
    if (text.slice(tree.end).trim() !== "") throw new Error("it is more than one expression");
  } catch (error) {
    return { problem: `not an expression: ${(error as Error).message.replace(/ \(.*\)$/, "")}` };
  }
  const used = new Set<string>();
  const own = new Set<string>();
  let refused: string | null = null;
  let late = false;
  walk(tree, (node, parent, key) => {
    if (REFUSED.test(node.type)) refused ??= text.slice(node.start, node.end);
    // A promise, or a generator, is true whatever comes of it.
    late ||= node.async === true || node.generator === true;
    if (key === "params" && parent !== null && /Function/.test(parent.type)) {
      walk(node, (one, _, as) => {
        if (one.type === "Identifier" && as !== "key") own.add(String(one.name));
      });
    }
    if (node.type !== "Identifier") return;
    const name = String(node.name);
    if (!(key === "property" && parent?.computed !== true) && key !== "key") used.add(name);
  });
  if (late) return { problem: "it must say at once whether it holds: no async, no function*" };
  if (/^(Arrow)?Function/.test(tree.type)) return { names: [], source: text };
  if (refused !== null) return { problem: `it only compares; "${refused}" does more than that` };
  const names = [...used].filter((name) => !own.has(name) && !KNOWN.has(name));
  if (names.length === 0) return { problem: `it names nothing that ${whose}` };
  return { names, source: `(${names.join(", ")}) => (${text})` };
}

/** The scenario with the source texts of functions. */
export function withSources(scenario: unknown): unknown {
  const { invariants } = (scenario ?? {}) as { invariants?: unknown };
  if (!Array.isArray(invariants)) return scenario;
  const texts = invariants.map((one: unknown) => {
    const { always } = (one ?? {}) as { always?: unknown };
    return typeof always === "function" ? { ...(one as object), always: String(always) } : one;
  });
  return { ...(scenario as object), invariants: texts };
}
