/** What `flash` asks of a device that it has just started, for tests of devices that lie. */
export { Settings } from "../config/settings.ts";
export { waitUntilOnline } from "../flash/online.ts";
