/**
 * The part that a project may preload, so that it stays in flash and takes no RAM: nothing here or
 * in its imports writes to objects that were created at load time. @noble does, so it is not
 * included.
 */
/** For program-rekey.ts. */
export { tokenProblem } from "@blindrelay/protocol";
/** For program-rekey.ts, and for programs that are pushed. */
export {
  asciiBytes,
  asciiText,
  crc32,
  decodeJson,
  deriveSignatureKey,
  encodeJson,
  equalTexts,
  extractPrk,
  fromBase64url,
  isObject,
  own,
  parsePacket,
  pushProof,
  rekeyProof,
  toHex,
} from "@blindrelay/protocol/crypto";
/** For program-forward.ts and program-rekey.ts. */
export { AgentSessions, LOOKUPS, OPENINGS } from "@blindrelay/protocol/session";
export { PONG_TEXT } from "@blindrelay/protocol/wire";
export { hashToken, raiseBootCount } from "../core/bootcount.ts";
/** For programs that are pushed. */
export { reasonOf } from "../core/dispatch.ts";
export { messageBytes, SMALL_MAX_PLAINTEXT } from "../embedded/bounded.ts";
export { provisionAgent, startAgent } from "../embedded/start.ts";

/** XS keeps names for ever: see `keptNames` of a start. */
export const KEPT_NAMES = 4096;
