/**
 * The environment by which a process that a test spawns records its seals (register.mjs). It is in
 * process.env already; a test that gives its processes an environment of their own adds it.
 */
export const recordingEnvironment = (): { [name: string]: string } => {
  const { NODE_OPTIONS = "", BLINDRELAY_TEST_NONCES = "" } = process.env;
  return { NODE_OPTIONS, BLINDRELAY_TEST_NONCES };
};
