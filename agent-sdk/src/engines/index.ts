export type { XsEngine } from "./built.ts";
export { espruinoFile, findXs, xsScript } from "./built.ts";
export { Engine, EngineProcess, findEspruino } from "./espruino-process.ts";
export { linkWire } from "./link-wire.ts";
export { MemoryPreference } from "./preference.ts";
export type { ConnectWire, Wire, WireEvents } from "./wire.ts";
export { XsDevice, type XsDeviceOptions } from "./xs-device.ts";
