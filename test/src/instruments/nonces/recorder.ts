/**
 * The nonce recorder: a wrapper for any suite that remembers, for every seal, which plaintext and
 * AAD were sealed with which raw key and nonce, and throws as soon as the same pair seals different
 * content (protocol/README.md section 2: a used seq is never sealed again).
 *
 * It is installed in every test of the repository: see vitest-plugin.ts, install-stand-ins.mjs and
 * setup.ts for this process, register.mjs for processes that a test spawns.
 */
import { createHash } from "node:crypto";
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";

/** One seal: fingerprints of (suite, key, nonce) and of (AAD, plaintext), 16 bytes in hex each. */
export interface SealRecord {
  readonly place: string;
  readonly content: string;
}

/** A key and nonce sealed a second plaintext or AAD. Thrown inside the seal that did it. */
export class NonceReuse extends Error {
  override name = "NonceReuse";
}

const fingerprint = (...parts: (Uint8Array | string)[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}|`).update(part);
  return hash.digest("hex").slice(0, 32);
};

export class NonceRecorder {
  /** Every reuse since the last `takeViolations`, including those whose exception was caught. */
  private violations: string[] = [];
  private readonly seen = new Map<string, string>();
  private readonly listener: ((record: SealRecord) => void) | null;
  seals = 0;

  /** `listener` is called before every seal. */
  constructor(listener: ((record: SealRecord) => void) | null = null) {
    this.listener = listener;
  }

  /**
   * Forgets what was sealed. For a test, or a run of a property, that starts a world of its own.
   */
  startScope(): void {
    this.seen.clear();
  }

  record(v: Version, key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array) {
    this.seals++;
    this.add({ place: fingerprint(v, key, nonce), content: fingerprint(aad, plaintext) });
  }

  /**
   * Throws NonceReuse if key and nonce have sealed other content; the same bytes again are
   * permitted.
   */
  add(record: SealRecord): void {
    this.listener?.(record);
    const before = this.seen.get(record.place);
    this.seen.set(record.place, record.content);
    if (before === undefined || before === record.content) return;
    const violation = `nonce used twice: key and nonce ${record.place} sealed ${before} and ${record.content}`;
    this.violations.push(violation);
    throw new NonceReuse(violation);
  }

  takeViolations(): string[] {
    const taken = this.violations;
    this.violations = [];
    return taken;
  }
}

/** The same suite, with every seal recorded. Keys from other suite objects are unknown here. */
export const recorded = (suite: Suite, recorder: NonceRecorder): Suite => {
  const raw = new WeakMap<AeadKey, { v: Version; key: Uint8Array }>();
  return {
    ...suite,
    aeadKey: (v, key) => {
      const handle = suite.aeadKey(v, key);
      // Suite "2" uses only the first half of the key, so only that half counts for a reuse.
      raw.set(handle, { v, key: Uint8Array.from(v === "2" ? key.subarray(0, 16) : key) });
      return handle;
    },
    seal: (handle, nonce, aad, plaintext) => {
      const known = raw.get(handle);
      if (known === undefined) throw new Error("sealed with a key that this suite did not make");
      recorder.record(known.v, known.key, nonce, aad, plaintext);
      return suite.seal(handle, nonce, aad, plaintext);
    },
  };
};

const RECORDER = Symbol.for("blindrelay.nonceRecorder");
/** Set by register.mjs in a spawned process. */
const LISTENER = Symbol.for("blindrelay.nonceRecorder.onRecord");
const home = globalThis as {
  [RECORDER]?: NonceRecorder;
  [LISTENER]?: (record: SealRecord) => void;
};

/** The one recorder of this process, however often this module is loaded. */
export const processRecorder = (): NonceRecorder => {
  home[RECORDER] ??= new NonceRecorder(home[LISTENER] ?? null);
  return home[RECORDER];
};
