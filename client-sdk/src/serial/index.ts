/** A bridged serial port at the end that uses it: what `blindrelay attach` runs. */
export {
  type Loss,
  type RemoteEvents,
  type RemoteOptions,
  RemotePort,
  type StatusLinesJson,
  UNKNOWN_METHOD,
} from "./remote-port.ts";
