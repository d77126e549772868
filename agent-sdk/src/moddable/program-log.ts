/**
 * A log that `blindrelay logs` reads, on Moddable: `startAgent({ keepLog: keepLog(), … })`. A
 * module of its own, so that a project without it does not contain it.
 */
export { keepLog } from "../core/give-log.ts";
