/** Flags whose value is a number, or on or off. */
import { InvalidArgumentError } from "commander";

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
