/** The modules that index.ts imports: the SDK's own, and one for each platform. */

declare module "timer" {
  const Timer: import("./sdk.ts").ModdableTimer;
  export default Timer;
}

declare module "time" {
  const Time: import("./sdk.ts").ModdableTime;
  export default Time;
}

/** The package's own, one of several files for each platform: moddable/manifest.json. */

declare module "blindrelay/values" {
  const values: import("./sdk.ts").ModdableValues;
  export default values;
}

declare module "blindrelay/print" {
  /** Prints a line on the console, in a release build too. */
  const print: (line: string) => void;
  export default print;
}
