/**
 * No key and nonce may seal two contents (contract, section 2): notified of every seal of a world.
 */
import { hash as digest } from "node:crypto";
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";

/** Keys remembered; the one not made for longest goes first. A session makes two. */
const MAX_KEYS = 200_000;

interface Sealed {
  /**
   * By the last four bytes of the nonce, which hold the sequence number: a fingerprint of AAD and
   * plaintext.
   */
  readonly contents: Map<number, number>;
}

export class NonceOracle {
  seals = 0;
  /** AAD of the latest seal and of the latest packet opened: `v|sid|seq`. */
  lastSealed = "";
  lastOpened = "";
  private readonly violate: (what: string) => void;
  private readonly keys = new Map<string, Sealed>();
  private readonly byHandle = new WeakMap<AeadKey, Sealed>();

  constructor(violate: (what: string) => void) {
    this.violate = violate;
  }

  /** The same suite, watched. */
  watch(suite: Suite): Suite {
    return {
      ...suite,
      aeadKey: (v, key) => {
        const handle = suite.aeadKey(v, key);
        this.byHandle.set(handle, this.keyOf(v, key));
        return handle;
      },
      seal: (handle, nonce, aad, plaintext) => {
        this.sealed(handle, nonce, aad, plaintext);
        return suite.seal(handle, nonce, aad, plaintext);
      },
      open: (handle, nonce, aad, sealed) => {
        const plaintext = suite.open(handle, nonce, aad, sealed);
        if (plaintext !== null) this.lastOpened = latin1(aad);
        return plaintext;
      },
    };
  }

  private keyOf(v: Version, key: Uint8Array): Sealed {
    const text = v + latin1(v === "2" ? key.subarray(0, 16) : key);
    const known = this.keys.get(text);
    if (known !== undefined) return known;
    const made: Sealed = { contents: new Map() };
    this.keys.set(text, made);
    if (this.keys.size > MAX_KEYS) {
      const [oldest] = this.keys.keys();
      this.keys.delete(oldest as string);
    }
    return made;
  }

  private sealed(handle: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): void {
    this.seals += 1;
    this.lastSealed = latin1(aad);
    const known = this.byHandle.get(handle);
    if (known === undefined) return;
    const place =
      ((nonce[8] as number) << 24) |
      ((nonce[9] as number) << 16) |
      ((nonce[10] as number) << 8) |
      (nonce[11] as number);
    const content = fingerprint(fingerprint(0x811c9dc5, aad), plaintext);
    const before = known.contents.get(place);
    if (before === undefined) known.contents.set(place, content);
    else if (before !== content) {
      this.violate(`one key and nonce sealed two contents, the second as ${this.lastSealed}`);
    }
  }
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");

/** From this length on, a digest is quicker than a look at each byte. */
const LONG = 1024;

const fingerprint = (start: number, bytes: Uint8Array): number => {
  if (bytes.length >= LONG) return start ^ digest("sha256", bytes, "buffer").readInt32LE(0);
  let hash = start;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash ^ bytes.length;
};
