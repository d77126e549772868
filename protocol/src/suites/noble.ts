/**
 * The suite for runtimes without node:crypto but with enough memory (browsers): the audited @noble
 * libraries. Loading it allocates AES tables of 1 MB; microcontrollers use noble-chacha.ts.
 */
import { cbc, ecb } from "@noble/ciphers/aes.js";
import type { Suite } from "../crypto/suite.ts";
import { withAes } from "./aes-blocks.ts";
import { nobleChachaSuite } from "./noble-chacha.ts";

/** A suite without native code; it is stateless and may be shared. */
export const nobleSuite = (): Suite =>
  withAes(nobleChachaSuite(), (key) => ({
    cbc: (blocks, iv) => cbc(key, iv, { disablePadding: true }).encrypt(blocks),
    ecb: (blocks) => ecb(key, { disablePadding: true }).encrypt(blocks),
  }));
