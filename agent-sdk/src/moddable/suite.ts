/**
 * The suite on Moddable: HMAC-SHA256 and AES in C if the project includes `crypt` and `hmac`, and
 * ChaCha20-Poly1305 by @noble (the SDK has ChaCha20, but neither Poly1305 nor CCM). @noble's AES is
 * not included, because it allocates tables of 1 MB. So version "2" requires the native cipher.
 */
import type { HmacKey, Suite } from "@blindrelay/protocol/crypto";
import { withAes } from "@blindrelay/protocol/suites/aes-blocks";
import { nobleChachaSuite } from "@blindrelay/protocol/suites/noble-chacha";

/** For program-rekey.ts. */
export { nobleSha256 } from "@blindrelay/protocol/suites/noble-chacha";

import type { ModdableCrypt } from "./sdk.ts";

type NativeHmac = InstanceType<NonNullable<ModdableCrypt["HMAC"]>>;

/** The SDK requires array buffers that are exactly as long as their content. */
const bufferOf = (bytes: Uint8Array): ArrayBuffer => bytes.slice().buffer as ArrayBuffer;

const withHmac = (suite: Suite, { Digest, HMAC }: ModdableCrypt): Suite => {
  if (Digest === undefined || HMAC === undefined) return suite;
  return {
    ...suite,
    hmacKey: (key) => ({ hmacKey: new HMAC(new Digest("SHA256"), key) }),
    hmac: (key: HmacKey, data) => new Uint8Array((key.hmacKey as NativeHmac).process(data)),
  };
};

/** Version "2" throws if `crypt` has no cipher. */
export const moddableSuite = (crypt: ModdableCrypt): Suite => {
  const suite = withHmac(nobleChachaSuite(), crypt);
  const { BlockCipher, Mode } = crypt;
  if (BlockCipher === undefined || Mode === undefined) return suite;
  return withAes(suite, (key) => {
    const cipher = new BlockCipher("AES", bufferOf(key));
    return {
      cbc: (blocks, iv) => new Uint8Array(new Mode("CBC", cipher, bufferOf(iv)).encrypt(blocks)),
      ecb: (blocks) => new Uint8Array(new Mode("ECB", cipher).encrypt(blocks)),
    };
  });
};
