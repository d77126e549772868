/**
 * A secret that `blindrelay agent rekey` replaces, on Moddable: `import { rekey } from
 * "blindrelay/rekey"`, then `startAgent({ rekey: rekey(), … })`. A module of its own, so that a
 * project without it does not contain it.
 */
export { rekey } from "../embedded/rekey.ts";
