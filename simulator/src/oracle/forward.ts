/**
 * Forward secrecy of packet versions "3" and "4" (contract, section 2b): nothing that a device
 * still has leads to what an earlier session or start used. This oracle is notified of every HMAC
 * and exchange in a world, and of what is on a device's medium when it starts.
 */
import type { HmacKey, Suite, X25519 } from "@blindrelay/protocol/crypto";
import { asciiBytes, toHex } from "@blindrelay/protocol/crypto";
import { Recent } from "./recent.ts";

/** The number of secrets remembered, newest first. A session uses two, and a start one. */
const SECRETS = 100_000;
/** What an agent derives a session's private value under, from the secret that then moves on. */
const LABEL = asciiBytes("x25519|");

interface Watched {
  readonly handle: HmacKey;
  readonly key: string;
}

const isLabelled = (data: Uint8Array): boolean => LABEL.every((byte, i) => data[i] === byte);

export class ForwardOracle {
  private readonly violate: (what: string) => void;
  /** Secrets that have served a session or a start, in hex. */
  private readonly used = new Recent<true>(SECRETS);

  constructor(violate: (what: string) => void) {
    this.violate = violate;
  }

  /** The same suite, watched. */
  watch(suite: Suite): Suite {
    return {
      ...suite,
      hmacKey: (key) => {
        const made: Watched = { handle: suite.hmacKey(key), key: toHex(key) };
        return { hmacKey: made };
      },
      hmac: (made, data) => {
        const { handle, key } = made.hmacKey as Watched;
        if (isLabelled(data)) this.use(key, "the secret of one session is still there for another");
        return suite.hmac(handle, data);
      },
    };
  }

  /** The same exchange for an agent, watched. `pinned`: its own key, or null. */
  exchanging(x25519: X25519, pinned: Uint8Array | null): X25519 {
    const own = pinned === null ? "" : toHex(pinned);
    return {
      isNative: x25519.isNative,
      pair: (privateKey) => {
        const key = toHex(privateKey);
        const pair = x25519.pair(privateKey);
        return {
          ...pair,
          shared: (publicKey) => {
            if (key !== own) this.use(key, "one private value is exchanged twice");
            return pair.shared(publicKey);
          },
        };
      },
    };
  }

  /** A device starts with this seed, and has these texts on its medium. */
  started(deviceId: string, seed: Uint8Array, texts: readonly (string | null)[]): void {
    const hex = toHex(seed);
    this.use(hex, `${deviceId} starts twice with one seed`);
    if (texts.some((text) => text?.includes(hex)))
      this.violate(`${deviceId} still has the seed of this start on its medium`);
  }

  private use(secret: string, what: string): void {
    if (this.used.get(secret)) this.violate(what);
    this.used.set(secret, true);
  }
}
