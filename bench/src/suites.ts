/** What sealing and opening one packet costs in each suite of `protocol`. */
import { randomBytes } from "node:crypto";
import type { Suite, Version } from "@blindrelay/protocol/crypto";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { interleave, type Standing } from "./interleave.ts";

const SIZES = [64, 256, 4_096, 16_384];
const VERSION: Version = "1";
const SLICE_MS = 40;

export interface SuiteResult {
  bytes: number;
  standings: Standing[];
  valid: boolean;
}

/** Node's own crypto is the yardstick; `@noble` is measured against it. */
export async function measureSuites(cycles: number): Promise<SuiteResult[]> {
  const results: SuiteResult[] = [];
  for (const bytes of SIZES) {
    const entries = [
      { name: "node", slice: slicer(nodeSuite(), bytes) },
      { name: "node again", slice: slicer(nodeSuite(), bytes) },
      { name: "noble", slice: slicer(nobleSuite(), bytes) },
    ];
    results.push({ bytes, ...(await interleave(entries, cycles)) });
  }
  return results;
}

/** Seals and opens under a new nonce each time, as a session does. */
function slicer(suite: Suite, bytes: number): () => Promise<number> {
  const key = suite.aeadKey(VERSION, randomBytes(32));
  const aad = randomBytes(50);
  const plaintext = randomBytes(bytes);
  const nonce = randomBytes(12);
  const counter = new DataView(nonce.buffer, nonce.byteOffset);
  let seq = 0;
  return async () => {
    const until = performance.now() + SLICE_MS;
    const before = process.cpuUsage();
    let packets = 0;
    do {
      for (let i = 0; i < 20; i++) {
        counter.setUint32(8, seq++);
        const opened = suite.open(key, nonce, aad, suite.seal(key, nonce, aad, plaintext));
        if (opened === null) throw new Error("a suite does not open what it sealed");
      }
      packets += 20;
    } while (performance.now() < until);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / packets;
  };
}
