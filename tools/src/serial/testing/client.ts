/** A tool's side of a port server, for tests of other packages. */
export { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
export { rfc2217Opener } from "../rfc2217.ts";
