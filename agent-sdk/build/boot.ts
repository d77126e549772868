/**
 * What a board runs at power-up. The SDK's file is evaluated at the top level and not loaded as a
 * module: Espruino gives each function of a module one more variable, and each of its calls too,
 * about 190 and then 10 at a time for this file. `require("blindrelay")` gives it to anyone who
 * asks afterwards; without this it loads the file as a module, which works the same and takes the
 * more. In a block it would be as in a module.
 */
export const LOAD =
  'exports={};eval(require("Storage").read("blindrelay"));$br=exports;Modules.addCached("blindrelay","module.exports=$br");';

/**
 * The content of `.bootcde`. `firmwareVersion`: said at every login, if there is one. `push`: of a
 * board that takes programs over the relay, and finds out which one it is to run.
 */
export const bootCode = (firmwareVersion: string | undefined, push: boolean): string => {
  const version = firmwareVersion === undefined ? "" : JSON.stringify(firmwareVersion);
  if (push) return `${LOAD}$br.boot(${version})`;
  return `${LOAD}$br.start(require("program")${version === "" ? "" : `,${version}`})`;
};

/** Whether `bootCode` made it, of this version of the SDK or an earlier one. */
export const isBootCode = (content: string): boolean =>
  /(^require\("blindrelay"\)|\$br)\.start\(require\("program"\)(,"[ -~]*")?\)$/.test(content) ||
  /\$br\.boot\(("[ -~]*")?\)$/.test(content);
