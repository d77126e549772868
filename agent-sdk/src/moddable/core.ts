/**
 * The part that a project may preload, so that it stays in flash and takes no RAM: nothing here or
 * in its imports writes to objects that were created at load time. @noble does, so it is not
 * included.
 */
export { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
export { asciiBytes, asciiText, crc32 } from "@blindrelay/protocol/crypto";
export { limitsOf, SMALL_AGENT_LIMITS } from "../core/limits.ts";
export { AgentCore, provisionBootCount, raiseBootCount } from "../index.ts";
