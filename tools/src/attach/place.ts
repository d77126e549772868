/**
 * What `attach` keeps beside the profile, by agent, port and local side: the claim, with which the
 * next attach after a crash goes on at once, and the terminal that its link led to. One process at
 * a time has a place.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { lockState, StateError } from "@blindrelay/agent-sdk/node";
import { Failure } from "@blindrelay/protocol/command-line";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { failing } from "../base/failing.ts";

export interface Place {
  readonly claim: string;
  /** The terminal that its link led to, or null. */
  readonly target: string | null;
  keep(target: string): void;
  release(): Promise<void>;
}

const CLAIM = /^[A-Za-z0-9_-]{22}$/;

const read = (file: string): { claim: string; target: string | null } => {
  try {
    const { claim, target } = JSON.parse(readFileSync(file, "utf8"));
    if (CLAIM.test(claim)) return { claim, target: typeof target === "string" ? target : null };
  } catch {
    // A first attach, or a file that a crash has cut: a new claim takes over from a dead one too.
  }
  return { claim: randomBytes(16).toString("base64url"), target: null };
};

/** Rejects with a Failure (device) if another process has it. */
export const takePlace = async (profilePath: string, names: readonly string[]): Promise<Place> => {
  const key = createHash("sha256").update(JSON.stringify(names)).digest("hex").slice(0, 24);
  const folder = join(dirname(profilePath), "attach", key);
  const file = join(folder, "claim.json");
  failing("usage", `cannot make ${folder}: `, () => makeFolder(folder));
  const lock = await lockState(folder).catch((error: unknown) => {
    if (!(error instanceof StateError)) throw error;
    const isUsed = error.problem === "locked";
    const text = isUsed ? `another attach has ${names.at(-1)}` : error.message;
    throw new Failure("device", text, error);
  });
  const { claim, target } = read(file);
  const write = (to: string | null): void => {
    writeFileSync(file, `${JSON.stringify({ names, claim, target: to })}\n`, { mode: 0o600 });
  };
  write(target);
  return { claim, target, keep: write, release: () => lock.release() };
};
