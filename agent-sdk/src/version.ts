/**
 * The version of this package, as every door says it in system.info. A test compares it with
 * package.json.
 *
 * [portable]
 */
export const SDK_VERSION = "0.1.0";
