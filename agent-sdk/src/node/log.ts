/** The default log of an agent: standard error. */
import { fileURLToPath } from "node:url";
import { harmless } from "@blindrelay/protocol/terminal-text";
import type { Log } from "../ports.ts";

/** Undefined in a bundle of CommonJS. */
const HERE: string | undefined = import.meta.url;

/** Code that a program's author does not look for: Node's, libraries' and, in a checkout, ours. */
const OTHERS = ["node:", "/node_modules/"].concat(
  ["../", "../../../protocol/"].flatMap((path) => {
    if (HERE === undefined) return [];
    const folder = new URL(path, HERE);
    return [folder.href, fileURLToPath(folder)];
  }),
);

/**
 * The frames of the program that threw, one per line, each with a line break before it; "" if there
 * is no stack. A stack without any is shown in full, because a bundle contains program and SDK.
 */
export const programFrames = (thrown: unknown): string => {
  try {
    return framesOf(thrown);
  } catch {
    return ""; // a program may give an error a message that cannot be made a text
  }
};

const framesOf = (thrown: unknown): string => {
  const text = thrown instanceof Error && typeof thrown.stack === "string" ? thrown.stack : "";
  // It begins with the message, in which a caller's text may look like frames.
  const said = text === "" ? "" : String(thrown);
  const stack = text.startsWith(said) ? text.slice(said.length) : text;
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.filter((line) => !OTHERS.some((other) => line.includes(other)));
  return (own.length === 0 ? frames : own).map((line) => `\n${line}`).join("");
};

/** Prints warnings and errors, with the place in the program where something was thrown. */
export const logToStderr: Log = (level, message, fields, thrown) => {
  if (level === "debug" || level === "info") return;
  const more = fields ? ` ${JSON.stringify(fields)}` : "";
  const text = `${level}: ${message}${more}${programFrames(thrown)}`;
  process.stderr.write(`${harmless(text)}\n`);
};
