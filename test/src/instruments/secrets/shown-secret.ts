/**
 * Replaces the one place where the `blindrelay` command shows secrets to a person
 * (../stand-ins.ts): the witness does not record what is shown there. Anywhere else, the same
 * secret is a leak.
 */
import { showSecret as show } from "../../../../tools/src/base/show-secret.ts";
import { unheard } from "./witness.ts";

export const showSecret: typeof show = (text) => unheard(() => show(text));
