/** Reads files that people edit: programs, settings, keys. */
import { readFileSync } from "node:fs";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText, parseJson } from "@blindrelay/protocol/parse-json";
import { failing } from "./failing.ts";

/** The bytes of a file. Throws a Failure (usage): `what`, the path and the reason. */
export const readBytes = (path: string, what: string): Uint8Array => {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EISDIR") throw new Failure("usage", `${what} ${path} is a folder: name a file`);
    throw new Failure("usage", `${what} ${path} cannot be read: ${message}`, error);
  }
};

/**
 * The text of a file. Throws a Failure (usage): `what`, the path and the reason, without the
 * content.
 */
export const readTextFile = (path: string, what: string): string => {
  const bytes = readBytes(path, what);
  return failing("usage", `${what} ${path} is `, () => decodeText(bytes));
};

/** The value in a JSON file. Throws the same, with line and column where it is invalid. */
export const readJsonFile = (path: string, what: string): unknown => {
  const text = readTextFile(path, what);
  return failing("usage", `${what} ${path} is `, () => parseJson(text));
};
