/** The SDK's own modules, as far as index.ts imports them. */

declare module "timer" {
  const Timer: import("./sdk.ts").ModdableTimer;
  export default Timer;
}

declare module "time" {
  const Time: import("./sdk.ts").ModdableTime;
  export default Time;
}

declare module "preference" {
  const Preference: import("./sdk.ts").ModdablePreference;
  export default Preference;
}

/** A global of Moddable's hosts. */
declare function trace(text: string): void;
