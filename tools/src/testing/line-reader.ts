/** For tests of other packages, in this repository only. */
export { LineReader, nmeaChecksum } from "../bridge/line-reader.ts";
