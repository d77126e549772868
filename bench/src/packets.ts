/**
 * The cost to seal, read and open a packet, by suite, size and engine, compared with the bare
 * cipher of node:crypto with a new nonce each time.
 */
import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";
import {
  type AeadVersion,
  deriveSessionKeys,
  extractPrk,
  openPacket,
  parsePacket,
  type Suite,
  sealPacket,
  type Version,
} from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type Comparison, interleave, type Pace, type Slice } from "./interleave.ts";
import { drawSid } from "./protocols.ts";

export const SIZES = [64, 256, 4_096, 16_384];
export const VERSIONS: readonly AeadVersion[] = ["1", "2"];
const CIPHERS = { "1": "chacha20-poly1305", "2": "aes-128-ccm" } as const;
const KEY_BYTES = { "1": 32, "2": 16 } as const;
const BATCH = 20;

export function measurePackets(
  v: AeadVersion,
  bytes: number,
  pace: Pace & { readonly sliceMs: number },
): Promise<Comparison> {
  const { sliceMs } = pace;
  const bare = () => slicer(sliceMs, bareCipher(v, bytes));
  return interleave(
    [
      { name: "bare cipher", matters: true, slice: bare() },
      { name: "bare cipher again", matters: true, slice: bare() },
      { name: "node", matters: true, slice: slicer(sliceMs, packets(nodeSuite(), v, bytes)) },
      { name: "noble", matters: true, slice: slicer(sliceMs, packets(nobleSuite(), v, bytes)) },
    ],
    pace,
  );
}

function slicer(sliceMs: number, work: () => void): () => Promise<Slice> {
  return async () => {
    for (let i = 0; i < BATCH; i++) work(); // warms the caches
    const until = performance.now() + sliceMs;
    const before = process.cpuUsage();
    let done = 0;
    do {
      for (let i = 0; i < BATCH; i++) work();
      done += BATCH;
    } while (performance.now() < until);
    const { user, system } = process.cpuUsage(before);
    return { us: (user + system) / done, generator: 0, server: 0 };
  };
}

/** A packet sealed by one side, read and opened by the other, with all steps in between. */
function packets(suite: Suite, v: Version, bytes: number): () => void {
  const sid = drawSid();
  const { c2a } = deriveSessionKeys(suite, extractPrk(suite, "bench", drawSid()), v, sid);
  const plaintext = new Uint8Array(randomBytes(bytes));
  let seq = 0;
  return () => {
    const packet = parsePacket(sealPacket(suite, c2a, v, sid, ++seq, plaintext));
    if (packet === null || openPacket(suite, c2a, packet) === null) {
      throw new Error("a suite cannot open its own packet");
    }
  };
}

function bareCipher(v: AeadVersion, bytes: number): () => void {
  // CCM and ChaCha20-Poly1305 take the same calls, but node has separate types for them.
  const cipher = CIPHERS[v] as "chacha20-poly1305";
  const key = createSecretKey(randomBytes(KEY_BYTES[v]));
  const nonce = randomBytes(12);
  const aad = randomBytes(50);
  const plaintext = randomBytes(bytes);
  const options = { authTagLength: 16 };
  const ofText = { plaintextLength: bytes };
  let count = 0;
  return () => {
    nonce.writeUInt32BE(++count, 8);
    const seal = createCipheriv(cipher, key, nonce, options);
    seal.setAAD(aad, ofText);
    const sealed = seal.update(plaintext);
    seal.final();
    const open = createDecipheriv(cipher, key, nonce, options);
    open.setAuthTag(seal.getAuthTag());
    open.setAAD(aad, ofText);
    open.update(sealed);
    open.final();
  };
}
