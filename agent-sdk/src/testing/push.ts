/** The core of pushes, for tests in other packages. */
export * from "../core/push.ts";
