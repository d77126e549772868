/** Which agents that accept programs have no watchdog, so that a program that hangs stays. */

/** Boards whose Espruino has `E.enableWatchdog` without a watchdog behind it. */
const WITHOUT =
  /^espruino \S+ (\w*LINUX|RASPBERRYPI|ESP8266\w*|EMSCRIPTEN\d?|NRF54L15\w*|BANGLEJS3|STM32L4\w*)\b/;

/** `runtime` and `watchdog`: as its `system.info` and `system.push` say. */
export const hasWatchdog = (runtime: string, watchdog: unknown): boolean =>
  watchdog !== false && !WITHOUT.test(runtime);

/** For a person, after the name of the agent. */
export const NO_WATCHDOG = "has no watchdog: a program that hangs stays until its power is cut";
