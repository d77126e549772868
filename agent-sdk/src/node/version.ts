/** The version of this package, as system.info says it. A test compares it with package.json. */
export const SDK_VERSION = "0.1.0";
