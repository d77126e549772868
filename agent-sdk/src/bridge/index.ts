/** A bridged serial port where the cable is: what `blindrelay bridge --mode raw` runs. */
export { DeviceAway } from "./away.ts";
export {
  type ControlLines,
  messageOf,
  NO_STATUS,
  type OpeningLines,
  type OpenPort,
  PortError,
  type PortEvents,
  type PortOpener,
  type PortProblem,
  type PortUser,
  type StatusLines,
} from "./port.ts";
export { RawLine, RawProgram } from "./raw.ts";
export { type Access, RawPort, type RawPortEdge } from "./raw-port.ts";
