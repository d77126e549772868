/**
 * The part that a project may preload, so that it stays in flash and takes no RAM: nothing here or
 * in its imports writes to objects that were created at load time. @noble does, so it is not
 * included.
 */
export { asciiBytes, asciiText, crc32 } from "@blindrelay/protocol/crypto";
/** For program-forward.ts. */
export { AgentSessions } from "@blindrelay/protocol/session";
export { messageBytes, SMALL_MAX_PLAINTEXT } from "../embedded/bounded.ts";
export { provisionAgent, startAgent } from "../embedded/start.ts";

/** XS keeps names for ever: see `keptNames` of a start. */
export const KEPT_NAMES = 4096;
