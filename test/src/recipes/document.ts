/** docs/recipes.md as sections of steps, in order. */
import { readFileSync } from "node:fs";

/** A fenced block of one of these kinds; others (cpp, json) are only for reading. */
export interface Block {
  readonly kind: "sh" | "yours" | "install" | "text" | "dialogue";
  readonly text: string;
  readonly line: number;
}

export interface Section {
  readonly title: string;
  readonly blocks: readonly Block[];
}

const PAGE = new URL("../../../docs/recipes.md", import.meta.url);

const KINDS: { readonly [info: string]: Block["kind"] } = {
  sh: "sh",
  "sh yours": "yours",
  "sh install": "install",
  text: "text",
  dialogue: "dialogue",
};

/** Throws if a fence is not closed. */
export const readSections = (page = readFileSync(PAGE, "utf8")): Section[] => {
  const sections: { title: string; blocks: Block[] }[] = [];
  let fence: { info: string; line: number; lines: string[] } | null = null;
  for (const [index, line] of page.split("\n").entries()) {
    if (fence !== null) {
      if (line !== "```") {
        fence.lines.push(line);
        continue;
      }
      const kind = KINDS[fence.info];
      const text = fence.lines.join("\n");
      if (kind !== undefined) sections.at(-1)?.blocks.push({ kind, text, line: fence.line });
      fence = null;
    } else if (line.startsWith("```")) {
      fence = { info: line.slice(3), line: index + 1, lines: [] };
    } else if (line.startsWith("## ")) {
      sections.push({ title: line.slice(3), blocks: [] });
    }
  }
  if (fence !== null) throw new Error(`line ${fence.line}: the fence is not closed`);
  return sections;
};

/** A line of a text block as a regular expression: … matches anything within a line. */
export const lineSource = (line: string): string =>
  line
    .split("…")
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .join("[^\\n]*");

/** One line of a dialogue: the output first, and then the input (null if there is none). */
export interface Turn {
  readonly shown: string;
  readonly typed: string | null;
}

export const readTurn = (line: string): Turn => {
  const [, shown = line, typed = null] = /^(.*)⟨(.*)⟩$/.exec(line) ?? [];
  return { shown, typed };
};
