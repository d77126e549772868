/**
 * The environment by which a process that a test starts is watched (register.mjs): what it seals,
 * what it logs and says on standard error, and which run of the tests it ends with. The only place
 * that makes it; child-processes.ts puts it into whatever environment a test gives.
 */

const REGISTER = new URL("register.mjs", import.meta.url).href;

/** The folder in which processes leave what was seen of them. */
export const RECORDS = "BLINDRELAY_TEST_RECORDS";

/** The run of the tests that a process belongs to, and ends with (reaper.ts). */
export const RUN = "BLINDRELAY_TEST_RUN";

/** `given` as it is, and what makes the process watched. NODE_OPTIONS of its own are kept. */
export const childEnvironment = (
  given: NodeJS.ProcessEnv,
  own: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS = "", ...others } = given;
  const loader = `--import=${REGISTER}`;
  return {
    ...handedOn("NODE_COMPILE_CACHE", own),
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
