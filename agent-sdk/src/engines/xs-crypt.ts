/** Node's end of the stand-in for the SDK's native crypto (xs/crypt.ts). */
import { createCipheriv, createHmac } from "node:crypto";
import type { Asked } from "./xs-messages.ts";

const bytes = (base64: string): Buffer => Buffer.from(base64, "base64");

/** The answer to `hmac` and `aes`, as base64; null for everything else. */
export const answerCrypt = (asked: Asked): string | null => {
  if (asked.op === "hmac") {
    return createHmac("sha256", bytes(asked.key)).update(bytes(asked.data)).digest("base64");
  }
  if (asked.op !== "aes") return null;
  const iv = asked.mode === "ECB" ? null : bytes(asked.iv);
  const cipher = createCipheriv(`aes-128-${asked.mode.toLowerCase()}`, bytes(asked.key), iv);
  cipher.setAutoPadding(false);
  return Buffer.concat([cipher.update(bytes(asked.data)), cipher.final()]).toString("base64");
};
