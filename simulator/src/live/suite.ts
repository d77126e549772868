/**
 * The suite of a fleet: Node's, but for what each device keeps. HMAC keys are bytes: a KeyObject is
 * faster, and with its native parts some 300 bytes, for a few HMACs at each opening of a session.
 * Digests, which are those keys and the secrets of epochs, lie in slabs: in memory of its own each
 * is 300 bytes too.
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
