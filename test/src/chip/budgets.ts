/** What the chip may cost: the section `chip` of agent-sdk/build/budgets.json. */
import { readFileSync } from "node:fs";

interface ChipBudgets {
  /** The compiler and the emulator with which instructions are compared; others differ. */
  readonly tools: string;
  /** The image with which the vectors were counted: the start of its SHA-256. */
  readonly vectorsOf: string;
  /** Instructions by file of vectors: to one tick with that image, within 12 % with another. */
  readonly vectors: { readonly [field: string]: number };
  /** Instructions, within 2 %. */
  readonly perCall: number;
  readonly perOpening: number;
  /** Bytes at most. */
  readonly heapOneClient: number;
  readonly heapManyClients: number;
  /** Where several open and call at once. */
  readonly heapBusy: number;
  readonly cStack: number;
  /** With what comes at random: answers as deep as calls may be. */
  readonly cStackAttacked: number;
  readonly jsStack: number;
  readonly image: number;
}

const file = new URL("../../../agent-sdk/build/budgets.json", import.meta.url);
export const budgets = (JSON.parse(readFileSync(file, "utf8")) as { readonly chip: ChipBudgets })
  .chip;

/** Instructions between two ticks of the emulated timer that counts them. */
const TICK = 40;

export const near =
  (budget: number, share: number) =>
  (value: number): boolean =>
    Math.abs(value - budget) <= Math.max(TICK, budget * share);
