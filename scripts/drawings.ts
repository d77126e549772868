/**
 * `node scripts/drawings.ts` draws docs/*.svg from the texts in docs/drawings; a test compares.
 *
 * A drawing is either boxes and arrows or a sequence. Its first line is its description, for people
 * who do not see it; empty lines and lines that begin with # do not count.
 *
 *   box ID X Y WIDTH TITLE       followed by its lines, indented; `in back quotes`: monospaced
 *   arrow A B TEXT               from one box to another
 *   actors NAME | NAME …         begins a sequence
 *   A -> B: TEXT                 a message; A -- TEXT: what A does; == TEXT: from here on
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";

export const SOURCES = resolve(import.meta.dirname, "../docs/drawings");
const WIDTH = 860;
const MARGIN = 10;
const LINE = 18;
const STEP = 34;
/** Generous widths of a character: fonts differ. */
const CHARACTER = { title: 9, line: 7, mono: 6.7 };

const STYLE = `<style>
  .box { fill: #f6f8fa; stroke: #57606a; } .note { fill: #ddf4ff; stroke: #0969da; }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328; } .line { font-size: 13px; fill: #424a53; }
  .mono { font-family: ui-monospace, monospace; font-size: 11px; fill: #1f2328; }
  .life { stroke: #8c959f; stroke-dasharray: 3 4; } .arrow { stroke: #0969da; stroke-width: 1.6; fill: none; marker-end: url(#head); }
  .head { fill: #0969da; } .paper { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    .box { fill: #161b22; stroke: #8b949e; } .note { fill: #0c2d4d; stroke: #58a6ff; } .title, .mono { fill: #e6edf3; }
    .line { fill: #9da7b1; } .life { stroke: #6e7681; } .arrow { stroke: #58a6ff; } .head { fill: #58a6ff; } .paper { fill: #0d1117; }
  }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>`;

type Kind = keyof typeof CHARACTER;
type Anchor = "start" | "middle";

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function wordsAt(x: number, y: number, text: string, kind: Kind, anchor: Anchor = "start"): string {
  const middle = anchor === "middle" ? ' text-anchor="middle"' : "";
  return `<text class="${kind}" x="${x}" y="${y}"${middle}>${escaped(text)}</text>`;
}

const widthOf = (text: string, kind: Kind): number => Math.ceil(text.length * CHARACTER[kind]);

function fit(text: string, kind: Kind, room: number): void {
  if (widthOf(text, kind) > room) throw new Error(`does not fit into ${room} px: ${text}`);
}

const rect = (kind: string, x: number, y: number, width: number, height: number, round = 6) =>
  `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}"/>`;

/** A text with a background of its own, so that lines do not cross it. */
function label(x: number, y: number, text: string, around = "paper"): string {
  const width = widthOf(text, "line") + 12;
  return rect(around, x - width / 2, y - 14, width, 20, 4) + wordsAt(x, y, text, "line", "middle");
}

function arrow(x1: number, y1: number, x2: number, y2: number): string {
  return `<path class="arrow" d="M${x1} ${y1} ${x2} ${y2}"/>`;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly title: string;
  readonly lines: string[];
}

const heightOf = ({ lines }: Box): number => 34 + lines.length * LINE + (lines.length > 0 ? 8 : 0);

function drawBox(box: Box): string {
  const { x, y, width, title, lines } = box;
  fit(title, "title", width - 24);
  const texts = lines.map((text, at) => {
    const mono = /^`(.*)`$/.exec(text)?.[1];
    const [words, kind] = mono === undefined ? [text, "line" as const] : [mono, "mono" as const];
    fit(words, kind, width - 24);
    return wordsAt(x + 12, y + 46 + at * LINE, words, kind);
  });
  return [
    rect("box", x, y, width, heightOf(box)),
    wordsAt(x + 12, y + 24, title, "title"),
    ...texts,
  ].join("\n");
}

/** From side to side if the boxes are beside each other, otherwise from bottom to top. */
function join(from: Box, to: Box, text: string): string {
  const middle = (box: Box) => [box.x + box.width / 2, box.y + heightOf(box) / 2] as const;
  const [fromX, fromY] = middle(from);
  const [toX, toY] = middle(to);
  const isRight = from.x + from.width < to.x;
  const isLeft = to.x + to.width < from.x;
  const down = fromY < toY;
  // Level if both reach that height, otherwise straight from box to box.
  const low = Math.max(from.y, to.y);
  const high = Math.min(from.y + heightOf(from), to.y + heightOf(to));
  const level = (low + high) / 2;
  const left = Math.max(from.x, to.x);
  const right = Math.min(from.x + from.width, to.x + to.width);
  const upright = (left + right) / 2;
  const [x1, y1, x2, y2] =
    isRight || isLeft
      ? [
          isRight ? from.x + from.width : from.x,
          low < high ? level : fromY,
          isRight ? to.x : to.x + to.width,
          low < high ? level : toY,
        ]
      : [
          left < right ? upright : fromX,
          down ? from.y + heightOf(from) : from.y,
          left < right ? upright : toX,
          down ? to.y : to.y + heightOf(to),
        ];
  const words = text === "" ? "" : label((x1 + x2) / 2, (y1 + y2) / 2 + 4, text);
  return arrow(x1, y1, x2, y2) + words;
}

function drawBoxes(lines: readonly string[]): { body: string; height: number } {
  const boxes = new Map<string, Box>();
  const arrows: string[] = [];
  let last: Box | undefined;
  const at = (id: string | undefined): Box => {
    const box = boxes.get(id ?? "");
    if (box === undefined) throw new Error(`there is no box ${id}`);
    return box;
  };
  for (const line of lines) {
    const [, id, x, y, width, title] = /^box (\S+) (\d+) (\d+) (\d+) (.*)$/.exec(line) ?? [];
    const [, from, to, text = ""] = /^arrow (\S+) (\S+) ?(.*)$/.exec(line) ?? [];
    if (id !== undefined) {
      last = { x: Number(x), y: Number(y), width: Number(width), title: title ?? "", lines: [] };
      boxes.set(id, last);
    } else if (from !== undefined) arrows.push(join(at(from), at(to), text));
    else if (line.startsWith("  ") && last !== undefined) last.lines.push(line.trim());
    else throw new Error(`cannot be read: ${line}`);
  }
  const all = [...boxes.values()];
  return {
    body: [...all.map(drawBox), ...arrows].join("\n"),
    height: Math.max(...all.map((box) => box.y + heightOf(box))) + MARGIN,
  };
}

function drawSequence(names: readonly string[], lines: readonly string[]) {
  const wide = WIDTH / names.length;
  const xOf = (name: string): number => {
    const at = names.indexOf(name);
    if (at < 0) throw new Error(`there is no actor ${name}`);
    return wide * (at + 0.5);
  };
  const parts: string[] = [];
  let y = 66;
  for (const line of lines) {
    const [, from, to, message = ""] = /^(\S+) -> (\S+): (.*)$/.exec(line) ?? [];
    const [, actor, note = ""] = /^(\S+) -- (.*)$/.exec(line) ?? [];
    const [, state = ""] = /^== (.*)$/.exec(line) ?? [];
    if (from !== undefined && to !== undefined) {
      fit(message, "line", Math.abs(xOf(to) - xOf(from)));
      parts.push(label((xOf(from) + xOf(to)) / 2, y, message));
      parts.push(arrow(xOf(from), y + 9, xOf(to), y + 9));
    } else if (actor !== undefined) {
      const half = widthOf(note, "line") / 2 + 8;
      const x = Math.min(Math.max(xOf(actor), half + MARGIN), WIDTH - half - MARGIN);
      parts.push(label(x, y, note, "note"));
    } else if (state !== "") {
      parts.push(rect("box", MARGIN, y - 15, WIDTH - 2 * MARGIN, 22));
      parts.push(wordsAt(WIDTH / 2, y, state, "line", "middle"));
    } else throw new Error(`cannot be read: ${line}`);
    y += STEP;
  }
  const heads = names.flatMap((name) => [
    `<path class="life" d="M${xOf(name)} 44 ${xOf(name)} ${y - 16}"/>`,
    rect("box", xOf(name) - 80, MARGIN, 160, 34),
    wordsAt(xOf(name), MARGIN + 23, name, "title", "middle"),
  ]);
  return { body: [...heads, ...parts].join("\n"), height: y };
}

/** The SVG of a drawing's text. Throws an Error that names the line that is wrong. */
export function draw(source: string): string {
  const [about = "", ...lines] = source.split("\n").filter((line) => /^\s*[^#\s]/.test(line));
  const actors = /^actors (.*)$/.exec(lines[0] ?? "")?.[1];
  const { body, height } =
    actors === undefined
      ? drawBoxes(lines)
      : drawSequence(
          actors.split("|").map((name) => name.trim()),
          lines.slice(1),
        );
  const name = escaped(about).replaceAll('"', "&quot;");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" role="img" aria-label="${name}">
${STYLE}
${body}
</svg>
`;
}

/** Path of each drawing -> what it should be. */
export const drawings = (): Map<string, string> =>
  new Map(
    readdirSync(SOURCES).map((file) => {
      const target = resolve(SOURCES, "..", `${basename(file, ".txt")}.svg`);
      return [target, draw(readFileSync(resolve(SOURCES, file), "utf8"))];
    }),
  );

if (import.meta.main) for (const [path, svg] of drawings()) writeFileSync(path, svg);
