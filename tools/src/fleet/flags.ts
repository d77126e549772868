/** Flags of commands that work on many agents. */
import { wholeNumber } from "@blindrelay/protocol/command-line";
import { InvalidArgumentError } from "commander";
import type { Command } from "../base/command.ts";

export interface FleetFlags {
  readonly where?: string;
  /** More than 0, at most 1. */
  readonly staged?: number;
  /** From 0 to 1. */
  readonly abortOver?: number;
}

const shareOf = (value: string): number =>
  /^\d+(\.\d+)?%$/.test(value) ? Number(value.slice(0, -1)) / 100 : Number.NaN;

/** Such as 5%: more than 0% and at most 100%. */
const stage = (value: string): number => {
  const share = shareOf(value);
  if (share > 0 && share <= 1) return share;
  throw new InvalidArgumentError("a share of the agents, more than 0% and at most 100%");
};

const limit = (value: string): number => {
  const share = shareOf(value);
  if (share >= 0 && share <= 1) return share;
  throw new InvalidArgumentError("a share of the outcomes, from 0% to 100%");
};

export const WHERE = "the agents that match, such as label.site=hall-7,firmware<1.5.0";

/** `--staged` and `--abort-over`. */
export const addRolloutFlags = (command: Command): Command =>
  command
    .option(
      "--staged <share>",
      "with --where: first this share of the agents, such as 5%, then 10, 20, 40 and 100%",
      stage,
    )
    .option(
      "--abort-over <share>",
      "with --where: stop once more than this share of the outcomes is not ok, such as 2%",
      limit,
    );

export const atOnce = wholeNumber(1, 1000);
