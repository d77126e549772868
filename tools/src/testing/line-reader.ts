/** For tests of other packages, only in this repository. */
export { LineReader, nmeaChecksum } from "../bridge/line-reader.ts";
