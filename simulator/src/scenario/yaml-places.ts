/** A scenario in YAML, and the positions of its parts. */
import { isCollection, LineCounter, parseDocument } from "yaml";
import type { Place } from "./check.ts";
import { ScenarioError, unreadable } from "./problems.ts";

export function readYaml(text: string, file: string): { value: unknown; placeOf: Place } {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const at = (offset: number) => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (document.errors.length > 0) {
    throw new ScenarioError(
      document.errors.map(({ message, pos }) => ({ file, ...at(pos[0]), message })),
    );
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    // An alias without its anchor, or too many aliases.
    throw unreadable(file, (error as Error).message);
  }
  return {
    value,
    placeOf(path, part) {
      if (part === "key") {
        const parent = document.getIn(path.slice(0, -1), true);
        if (isCollection(parent)) {
          for (const item of parent.items as { key?: { value?: unknown; range?: number[] } }[]) {
            if (item.key?.value === path.at(-1)) return at(item.key?.range?.[0] ?? 0);
          }
        }
      }
      // A missing value is reported where its parent begins.
      for (let depth = path.length; depth >= 0; depth--) {
        const node = document.getIn(path.slice(0, depth), true) as { range?: number[] } | undefined;
        if (node?.range !== undefined) return at(node.range[0] as number);
      }
      return { line: 1, column: 1 };
    },
  };
}
