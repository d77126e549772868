/** The core of pushes, for who judges it from outside. */
export * from "../core/push.ts";
