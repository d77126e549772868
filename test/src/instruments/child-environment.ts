/**
 * The environment by which a process that a test starts is watched (register.mjs): what it seals,
 * what it logs and writes to standard error, and the test run that it ends with. Nothing else
 * creates it; child-processes.ts adds it to any environment that a test passes.
 */

const REGISTER = new URL("register.mjs", import.meta.url).href;

/** The folder to which processes write their records. */
export const RECORDS = "BLINDRELAY_TEST_RECORDS";

/** The folder of the test run that a process belongs to, and ends with (reaper.ts). */
export const RUN = "BLINDRELAY_TEST_RUN";

/** The folder of bundled packages (packages.ts). */
export const PACKAGES = "BLINDRELAY_TEST_PACKAGES";

/** `given`, plus what makes the process watched. NODE_OPTIONS in it are kept. */
export const childEnvironment = (
  given: NodeJS.ProcessEnv,
  own: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS = "", ...others } = given;
  const loader = `--import=${REGISTER}`;
  return {
    ...handedOn("NODE_COMPILE_CACHE", own),
    ...handedOn(PACKAGES, own),
    ...handedOn(RECORDS, own),
    ...handedOn(RUN, own),
    ...others,
    NODE_OPTIONS: NODE_OPTIONS.includes(loader) ? NODE_OPTIONS : `${NODE_OPTIONS} ${loader}`.trim(),
  };
};

const handedOn = (name: string, own: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const value = own[name];
  return value === undefined ? {} : { [name]: value };
};
