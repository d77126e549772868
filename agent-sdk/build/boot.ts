/**
 * What a board runs at power-up. The SDK's file is evaluated at the top level and not loaded as a
 * module: Espruino gives each function of a module one more variable, and each of its calls
 * another. `require("blindrelay")` returns it afterwards; without this boot code it loads the file
 * as a module, which works the same and costs these variables.
 */
export const LOAD =
  'exports={};eval(require("Storage").read("blindrelay"));$br=exports;Modules.addCached("blindrelay","module.exports=$br");';

/**
 * The content of `.bootcde`. `firmwareVersion`: sent at every login, if set. `push`: for a board
 * that accepts programs over the relay, and decides at boot which one to run.
 */
export const bootCode = (firmwareVersion: string | undefined, push: boolean): string => {
  const version = firmwareVersion === undefined ? "" : JSON.stringify(firmwareVersion);
  if (push) return `${LOAD}$br.boot(${version})`;
  return `${LOAD}$br.start(require("program")${version === "" ? "" : `,${version}`})`;
};

/** Whether `bootCode` produced it, in this version of the SDK or an earlier one. */
export const isBootCode = (content: string): boolean =>
  /(^require\("blindrelay"\)|\$br)\.start\(require\("program"\)(,"[ -~]*")?\)$/.test(content) ||
  /\$br\.boot\(("[ -~]*")?\)$/.test(content);
