/** Flags whose value is a number, or on or off. */
import { InvalidArgumentError } from "commander";

/** `most`: null for no limit. */
export const wholeNumber =
  (least: number, most: number | null) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isSafeInteger(number) && number >= least && (most === null || number <= most)) {
      return number;
    }
    const range = most === null ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`a whole number ${range}`);
  };

export const onOff = (value: string): boolean => {
  if (value === "on" || value === "off") return value === "on";
  throw new InvalidArgumentError("on or off");
};

/** More than 0. */
export const seconds =
  (most: number) =>
  (text: string): number => {
    const number = Number(text);
    if (number > 0 && number <= most) return number;
    throw new InvalidArgumentError(`seconds, more than 0 and at most ${most}`);
  };
