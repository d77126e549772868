/** Runs on Espruino: its number parser and writer, with doubles given by their bytes. */
import { readNumber, writeNumber } from "../espruino/numbers.ts";

/** The eight bytes of a double, lowest first, as hex. */
const hexOf = (value: number): string => {
  const bytes = new Uint8Array(new Float64Array([value]).buffer);
  let hex = "";
  for (let i = 0; i < 8; i++) hex += (256 + (bytes[i] as number)).toString(16).substring(1);
  return hex;
};

const doubleOf = (hex: string): number => {
  const bytes = new Uint8Array(8);
  for (let i = 0; i < 8; i++) bytes[i] = parseInt(hex.substring(i * 2, i * 2 + 2), 16);
  return new Float64Array(bytes.buffer)[0] as number;
};

/** How each double is written. */
export const written = (doubles: string[]): string[] =>
  doubles.map((hex) => writeNumber(doubleOf(hex)));

/** The double for each text. */
export const read = (texts: string[]): string[] => texts.map((text) => hexOf(readNumber(text)));
