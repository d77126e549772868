/**
 * The part that a project may preload, so that it stays in flash and takes no RAM: nothing here,
 * and nothing that it loads, writes to objects that were made at load time. @noble does, so it
 * stays outside.
 */
export { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
export { asciiBytes, asciiText, crc32 } from "@blindrelay/protocol/crypto";
export { AgentCore, provisionBootCount, raiseBootCount } from "../index.ts";
