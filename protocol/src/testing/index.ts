/**
 * The conformance runner: every runtime runs the same files of protocol/vectors through it, with
 * its own suite. It reads no files and needs only the portable core; a small board passes one file,
 * or a copy with one case, at a time.
 *
 *   const failures = checkVectors(nodeSuite(), { hkdf: JSON.parse(text) });   // [] if all pass
 *
 * [portable]
 */
import type { Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { checkAead, checkContract, checkHkdf, checkHmac, checkPush } from "./crypto.ts";
import { checkBase64url, checkJson, checkTokens } from "./encoding.ts";
import type { VectorFiles } from "./files.ts";
import { checkPackets } from "./packets.ts";
import { checkSessions } from "./sessions.ts";

export type { AgentTrace, ClientTrace, VectorFiles } from "./files.ts";

/** The file in protocol/vectors behind each field of VectorFiles. */
export const VECTOR_FILE_NAMES: { readonly [field in keyof VectorFiles]-?: string } = {
  contract: "contract.json",
  hkdf: "hkdf.json",
  hmac: "hmac.json",
  chacha20Poly1305: "chacha20-poly1305.json",
  aes128Ccm: "aes-128-ccm.json",
  base64url: "base64url.json",
  json: "json.json",
  tokens: "tokens.json",
  push: "push.json",
  packets: "packets.json",
  sessions: "sessions.json",
};

/**
 * Runs the given files; returns a sentence for each failure. `versions`: of packets that the suite
 * has, if not all; cases of others are left out.
 */
export const checkVectors = (
  suite: Suite,
  files: VectorFiles,
  versions?: readonly Version[],
): string[] => {
  const has = (v: string): boolean => versions === undefined || versions.indexOf(v as Version) >= 0;
  const failures: string[] = [];
  if (files.contract !== undefined) checkContract(suite, files.contract, has, failures);
  if (files.hkdf !== undefined) checkHkdf(suite, files.hkdf, failures);
  if (files.hmac !== undefined) checkHmac(suite, files.hmac, failures);
  if (files.chacha20Poly1305 !== undefined && has("1"))
    checkAead(suite, files.chacha20Poly1305, failures);
  if (files.aes128Ccm !== undefined && has("2")) checkAead(suite, files.aes128Ccm, failures);
  if (files.base64url !== undefined) checkBase64url(files.base64url, failures);
  if (files.json !== undefined) checkJson(files.json, failures);
  if (files.tokens !== undefined) checkTokens(files.tokens, failures);
  if (files.push !== undefined) checkPush(suite, files.push, failures);
  if (files.packets !== undefined) checkPackets(suite, files.packets, has, failures);
  if (files.sessions !== undefined) checkSessions(suite, files.sessions, has, failures);
  return failures;
};
