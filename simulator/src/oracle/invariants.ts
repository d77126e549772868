/** Checks, after each event at a device, what its program promises about what it exposes. */
import type { ParsedInvariant } from "../scenario/invariants.ts";

/** A device as its program's promises see it. */
export interface Exposing {
  readonly id: string;
  readonly group: string;
  /** What the program of this start exposes; null: it has not begun, or has no power. */
  readonly exposed: ReadonlyMap<string, () => unknown> | null;
}

export interface Invariant extends ParsedInvariant {
  readonly group: string;
  /** As it was written. */
  readonly text: string;
  readonly holds: (...values: unknown[]) => unknown;
}

const MAX_SHOWN = 300;

export class InvariantOracle {
  private readonly invariants: readonly Invariant[];
  private readonly violate: (what: string) => void;

  constructor(violate: (what: string) => void, invariants: readonly Invariant[]) {
    this.violate = violate;
    this.invariants = invariants;
  }

  /** `event`: what has just happened to it. */
  check(device: Exposing, event: string): void {
    const { exposed } = device;
    if (exposed === null) return;
    for (const invariant of this.invariants) {
      if (invariant.group !== device.group) continue;
      const wrong = problemOf(invariant, device, exposed);
      if (wrong !== null) this.violate(`${device.id}: ${wrong}, after ${event}`);
    }
  }
}

const problemOf = (
  { names, text, holds }: Invariant,
  { id, group }: Exposing,
  exposed: ReadonlyMap<string, () => unknown>,
): string | null => {
  for (const name of names) {
    if (exposed.has(name)) continue;
    const others = [...exposed.keys()].join(", ");
    return `"${text}" names ${name}, and the program exposes ${others === "" ? "nothing" : others}: agent.expose("${name}", () => …)`;
  }
  const values: Record<string, unknown> = {};
  try {
    for (const [name, read] of exposed) {
      if (names.length === 0 || names.includes(name)) values[name] = read();
    }
    const given = names.length === 0 ? [values, { id, group }] : names.map((name) => values[name]);
    const result = holds(...given);
    // Its own or what a program exposes: a promise is true whatever comes of it.
    if ([result, ...Object.values(values)].some(isPromise)) {
      return `"${text}" is about a promise: expose what it came to`;
    }
    if (result) return null;
    return `"${text}" does not hold: ${shown(values)}`;
  } catch (error) {
    return `"${text}" throws ${String(error)}: ${shown(values)}`;
  }
};

const isPromise = (value: unknown): boolean =>
  typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";

const shown = (values: Record<string, unknown>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name} = ${textOf(value)}`.slice(0, MAX_SHOWN))
    .join(", ");

/** As JSON, which not every value has. */
const textOf = (value: unknown): string => {
  try {
    return String(JSON.stringify(value));
  } catch (error) {
    return `something that JSON cannot say (${(error as Error).message.split("\n", 1)[0]})`;
  }
};
