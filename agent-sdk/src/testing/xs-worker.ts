/** The real XS engine, for scripts of a test's own. */
export { XsWorker } from "../engines/xs-worker.ts";
