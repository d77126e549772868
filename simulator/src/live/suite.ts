/**
 * The suite of a fleet: Node's, with HMAC keys as bytes of a shared pool. A KeyObject is faster,
 * but each device would keep one, which with its native parts is some 300 bytes, for a few HMACs at
 * each opening of a session.
 */
import { createHmac } from "node:crypto";
import type { Suite } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";

export const fleetSuite = (): Suite => ({
  ...nodeSuite(),
  hmacKey: (key) => ({ hmacKey: Buffer.from(key) }),
  hmac: (key, data) =>
    createHmac("sha256", key.hmacKey as Buffer)
      .update(data)
      .digest(),
});
