/**
 * The suite of a fleet: Node's, except for what each device stores. HMAC keys are bytes: a
 * KeyObject is faster, but takes some 300 bytes with its native parts, for a few HMACs at each
 * opening of a session. Digests (those keys, and the secrets of epochs) are in slabs: in separate
 * memory each would take 300 bytes too.
 */
import { createHmac } from "node:crypto";
import type { Suite } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";

const DIGEST_BYTES = 32;
const SLAB_BYTES = 8192;

export const fleetSuite = (): Suite => {
  let slab = Buffer.alloc(0);
  return {
    ...nodeSuite(),
    hmacKey: (key) => ({ hmacKey: key }),
    hmac(key, data) {
      if (slab.length === 0) slab = Buffer.alloc(SLAB_BYTES);
      const digest = slab.subarray(0, DIGEST_BYTES);
      slab = slab.subarray(DIGEST_BYTES);
      digest.set(
        createHmac("sha256", key.hmacKey as Uint8Array)
          .update(data)
          .digest(),
      );
      return digest;
    },
  };
};
