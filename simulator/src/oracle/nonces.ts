/**
 * No key and nonce may seal two contents (contract, section 2). This oracle is notified of every
 * seal in a world.
 */
import { hash as digest } from "node:crypto";
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";
import { Recent } from "./recent.ts";

/** The number of keys remembered, newest first. A session makes two. */
const KEYS = 100_000;

interface Sealed {
  /**
   * By the last four bytes of the nonce, which contain the sequence number: a fingerprint of AAD
   * and plaintext. null: the key has sealed nothing.
   */
  contents: Map<number, number> | null;
}

/** The number of plaintexts remembered, and the bytes that a packet is known by. */
const PLAINTEXTS = 5_000;
const HEAD_BYTES = 12;

/** A packet and what is in it. */
interface Opened {
  readonly packet: Uint8Array;
  readonly plaintext: Uint8Array;
}

/** The first sixteen characters of a packet's `p`. */
const headOf = (packet: Uint8Array): string =>
  Buffer.from(packet.subarray(0, HEAD_BYTES)).toString("base64url");

/** A key as returned by the watched suite. */
interface Watched {
  readonly key: AeadKey;
  readonly sealed: Sealed;
}

const NOTHING = new Uint8Array(0);

const watched = (handle: AeadKey): Watched => handle.aeadKey as Watched;

export class NonceOracle {
  seals = 0;
  private sealedAad: Uint8Array = NOTHING;
  private openedAad: Uint8Array = NOTHING;
  /** What was sealed lately, in a ring; null: nobody asks. */
  private readonly latest: Opened[] | null;
  private readonly violate: (what: string) => void;
  private readonly keys = new Recent<Sealed>(KEYS);

  /** `keeps`: plaintexts can be asked for. */
  constructor(violate: (what: string) => void, keeps = false) {
    this.violate = violate;
    this.latest = keeps ? [] : null;
  }

  /** AAD of the latest seal: `v|sid|seq`. */
  get lastSealed(): string {
    return latin1(this.sealedAad);
  }

  /** The same for the latest packet opened since `forgetOpened`; "" if there is none. */
  get lastOpened(): string {
    return latin1(this.openedAad);
  }

  forgetOpened(): void {
    this.openedAad = NOTHING;
  }

  /** What was sealed lately, by the first sixteen characters of the packet's `p`. */
  plaintexts(): ReadonlyMap<string, string> {
    // Not kept as texts: to make them costs more than to check the seal.
    const known = (this.latest ?? []).filter((one) => one !== undefined);
    return new Map(
      known.map(({ packet, plaintext }) => [headOf(packet), Buffer.from(plaintext).toString()]),
    );
  }

  /** The same suite, watched. */
  watch(suite: Suite): Suite {
    return {
      ...suite,
      aeadKey: (v, key) => {
        const made: Watched = { key: suite.aeadKey(v, key), sealed: this.sealedWith(v, key) };
        return { aeadKey: made };
      },
      seal: (handle, nonce, aad, plaintext) => {
        const { key, sealed } = watched(handle);
        this.seal(sealed, nonce, aad, plaintext);
        const packet = suite.seal(key, nonce, aad, plaintext);
        if (this.latest !== null) this.latest[this.seals % PLAINTEXTS] = { packet, plaintext };
        return packet;
      },
      open: (handle, nonce, aad, sealed) => {
        const plaintext = suite.open(watched(handle).key, nonce, aad, sealed);
        if (plaintext !== null) this.openedAad = aad;
        return plaintext;
      },
    };
  }

  private sealedWith(v: Version, key: Uint8Array): Sealed {
    const text = v + latin1(v === "2" ? key.subarray(0, 16) : key);
    const sealed = this.keys.get(text) ?? { contents: null };
    this.keys.set(text, sealed);
    return sealed;
  }

  private seal(sealed: Sealed, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): void {
    this.seals += 1;
    this.sealedAad = aad;
    const place =
      ((nonce[8] as number) << 24) |
      ((nonce[9] as number) << 16) |
      ((nonce[10] as number) << 8) |
      (nonce[11] as number);
    const content = fingerprint(fingerprint(0x811c9dc5, aad), plaintext);
    sealed.contents ??= new Map();
    const before = sealed.contents.get(place);
    if (before === undefined) sealed.contents.set(place, content);
    else if (before !== content) {
      this.violate(`one key and nonce sealed two contents, the second as ${this.lastSealed}`);
    }
  }
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");

/** From this length on, a digest is faster than reading each byte. */
const LONG = 1024;

const fingerprint = (start: number, bytes: Uint8Array): number => {
  if (bytes.length >= LONG) return start ^ digest("sha256", bytes, "buffer").readInt32LE(0);
  let hash = start;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash ^ bytes.length;
};
