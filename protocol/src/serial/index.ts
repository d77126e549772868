/** What both ends of a bridged serial port share: numbered bytes, when they are sent, settings. */
export { Gather } from "./gather.ts";
export { MAX_KEPT_BYTES, NumberedBytes } from "./numbered-bytes.ts";
export {
  DEFAULT_SETTINGS,
  type FlowControl,
  isSettings,
  type LineSettings,
  type Parity,
  readSettings,
  type SettingsJson,
  settingsAsJson,
} from "./settings.ts";
