/**
 * The push key of a state folder, in a file beside the boot count. Once it is there, it guards the
 * folder's programs whether or not a start names it.
 */
import { tokenProblem } from "@blindrelay/protocol";
import { equalTexts } from "@blindrelay/protocol/crypto";
import { reasonOf } from "../core/dispatch.ts";
import type { StoragePort } from "../ports.ts";
import { StateError } from "./errors.ts";

const FILE = "push.key";

const keep = (storage: StoragePort, key: string): void => {
  try {
    storage.write(FILE, key);
  } catch (error) {
    throw new StateError("medium", `the push key cannot be stored: ${reasonOf(error)}`, error);
  }
};

/**
 * The key that guards a locked folder with a boot count; null: none. `given`: the one that this
 * start names, which a folder without one takes, durably on return. Throws a StateError for another
 * key than the folder's, and for one that is damaged.
 */
export const claimPushKey = (storage: StoragePort, given: string | undefined): string | null => {
  const held = storage.read(FILE);
  if (held === null) {
    if (given !== undefined) keep(storage, given);
    return given ?? null;
  }
  const problem = tokenProblem(held, "push");
  if (problem !== null) throw new StateError("pushKey", `${FILE} in the state folder: ${problem}`);
  if (given !== undefined && !equalTexts(given, held)) {
    throw new StateError("pushKey", "this is not the push key that the state folder was given");
  }
  return held;
};
