/** Runs on Espruino: reads JSON as the agent does. */
import { decodeJson, encodeJson } from "../espruino/natives.ts";

declare const getTime: () => number;

export interface Read {
  /** Written again; null: it is no JSON; "": it holds a number that JSON cannot express. */
  readonly text: string | null;
  readonly seconds: number;
}

const written = (value: unknown): string | null => {
  try {
    return value === undefined ? null : encodeJson(value) || "";
  } catch {
    return "";
  }
};

export const read = (texts: string[]): Read[] =>
  texts.map((given) => {
    const begin = getTime();
    const value = decodeJson(given);
    const seconds = getTime() - begin;
    return { text: written(value), seconds };
  });
