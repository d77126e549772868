/** Simulators: `trace` prints on standard output, in a release build too. */
export default (line) => trace(`${line}\n`);
