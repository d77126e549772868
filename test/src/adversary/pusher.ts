/** A person's push of one program to one device, step by step, like `blindrelay push`. */
import { idOf, sha256, type Wishes } from "./pushed-slots.ts";

const PART = 24;
const TRIAL_SECONDS = 20;
const TRIES = 40;
const PAUSE_MS = 500;

/** Sends a `system.push` call; `answer` gets the result, or null if there was none. */
export type PushCall = (params: object | undefined, answer: (result: unknown) => void) => void;

export interface Push {
  /** Whether the program is kept; null until the push is over. */
  kept: boolean | null;
}

export const push = (
  program: string,
  wishes: Wishes,
  ask: PushCall,
  later: (ms: number, fn: () => void) => void,
): Push => {
  const state: Push = { kept: null };
  const id = idOf(program);
  const over = (kept: boolean): void => {
    state.kept = kept;
  };
  const watch = (tries: number): void => {
    if (tries === 0) return over(false);
    ask(undefined, (result) => {
      const {
        id: runs,
        trial,
        failed,
      } = (result ?? {}) as Partial<
        Record<"id" | "trial", string | null> & { failed: { id: string } | null }
      >;
      if (runs === id && trial === null) return over(true);
      if (failed?.id === id) return over(false);
      if (trial === id) {
        wishes.confirmed.add(id);
        ask({ confirm: id }, () => undefined);
      }
      later(PAUSE_MS, () => watch(tries - 1));
    });
  };
  const part = (at: number): void => {
    if (at >= program.length) {
      wishes.started.add(id);
      ask({ start: true }, () => later(PAUSE_MS, () => watch(TRIES)));
      return;
    }
    const data = Buffer.from(program.slice(at, at + PART)).toString("base64url");
    ask({ at, data }, (result) => (result === null ? over(false) : part(at + PART)));
  };
  wishes.sent.add(program);
  const head = { size: program.length, sha256: sha256(program), version: "1.0.0" };
  ask({ ...head, seconds: TRIAL_SECONDS }, (result) => (result === null ? over(false) : part(0)));
  return state;
};
