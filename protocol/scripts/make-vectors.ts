/**
 * Writes protocol/vectors, except contract.json, which is given:
 *
 *   node protocol/scripts/make-vectors.ts
 *
 * A test regenerates and compares them, so they cannot be edited by hand.
 */
import { writeFileSync } from "node:fs";
import { base64urlFile, jsonFile, tokensFile } from "./vectors/encoding.ts";
import { packetsFile } from "./vectors/packets.ts";
import { aes128CcmFile, chacha20Poly1305File, hkdfFile, hmacFile } from "./vectors/primitives.ts";
import { pushFile } from "./vectors/push.ts";
import { sessionsFile } from "./vectors/sessions.ts";

/** The text of every generated file, by its name. */
export const makeVectorFiles = (): { [name: string]: string } => {
  const files = {
    "hkdf.json": hkdfFile,
    "hmac.json": hmacFile,
    "chacha20-poly1305.json": chacha20Poly1305File,
    "aes-128-ccm.json": aes128CcmFile,
    "base64url.json": base64urlFile,
    "json.json": jsonFile,
    "tokens.json": tokensFile,
    "push.json": pushFile,
    "packets.json": packetsFile,
    "sessions.json": sessionsFile,
  };
  return Object.fromEntries(
    Object.entries(files).map(([name, value]) => [name, `${JSON.stringify(value, null, 1)}\n`]),
  );
};

if (import.meta.main) {
  for (const [name, text] of Object.entries(makeVectorFiles())) {
    writeFileSync(new URL(`../vectors/${name}`, import.meta.url), text);
  }
}
