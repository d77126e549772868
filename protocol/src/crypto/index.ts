export {
  base64urlPart,
  fromBase64url,
  isBase64urlText,
  toBase64url,
} from "../encoding/base64url.ts";
export {
  asciiBytes,
  asciiText,
  equalBytes,
  equalTexts,
  fromHex,
  PIECE_LENGTH,
  toHex,
  utf8Bytes,
} from "../encoding/bytes.ts";
export { crc32 } from "../encoding/crc32.ts";
export {
  asciiJson,
  decodeJson,
  encodeJson,
  isObject,
  jsonBytes,
  own,
  ownString,
  readJson,
} from "../encoding/json.ts";
export { rawMember } from "../encoding/raw-member.ts";
export type { AesBlocks } from "./ccm.ts";
export { ccmOpen, ccmSeal } from "./ccm.ts";
export { deviceKeyProblem } from "./device-key.ts";
export type { X25519, X25519Pair } from "./forward-keys.ts";
export { hkdfExpand, hkdfExtract } from "./hkdf.ts";
export type { Packet } from "./packet.ts";
export { openPacket, parsePacket, sealPacket } from "./packet.ts";
export { pushProof, rekeyProof } from "./push-proof.ts";
export { deriveEpochSecret, deriveSignatureKey, extractPrk, signPayload } from "./secret-keys.ts";
export { deriveAgentPart, deriveSessionKeys, nextEpochSecret } from "./session-keys.ts";
export type { AeadKey, HmacKey, Suite } from "./suite.ts";
export type { AeadVersion, Version } from "./versions.ts";
export { isForward, isVersion } from "./versions.ts";
