/**
 * The suite on Moddable: HMAC-SHA256 and AES in C where the project includes `crypt` and `hmac`,
 * ChaCha20-Poly1305 by @noble (the SDK has ChaCha20, but no Poly1305, and no CCM). @noble's AES is
 * left out: it makes tables of 1 MB. So version "2" wants the native cipher.
 */
import type { HmacKey, Suite } from "@blindrelay/protocol/crypto";
import { withAes } from "@blindrelay/protocol/suites/aes-blocks";
import { nobleChachaSuite } from "@blindrelay/protocol/suites/noble-chacha";
import type { ModdableCrypt } from "./sdk.ts";

type NativeHmac = InstanceType<NonNullable<ModdableCrypt["HMAC"]>>;

/** The SDK wants array buffers, exactly as long as what they hold. */
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
