/**
 * Types of Espruino's globals that the edge uses.
 *
 * [portable] types only, nothing is left of this file at run time.
 */

/** `require("Storage")`: a log of files in flash, not included in `save()`. */
export interface EspruinoStorage {
  read(name: string): string | undefined;
  /** False if it does not fit. `offset`: of a part, in a file of `size` bytes. */
  write(name: string, data: string | Uint8Array, offset?: number, size?: number): boolean;
  erase(name: string): void;
  getFree(): number;
  /** Only in recent firmware. */
  getStats?(): { readonly trashBytes: number };
}

/** What `require("crypto")` has on an Espruino build; some boards lack SHA-256, AES or both. */
export interface EspruinoCrypto {
  SHA1(text: string): ArrayBuffer;
  /** Undefined if there is no contiguous memory for the result. */
  SHA256?(data: Uint8Array): ArrayBuffer | undefined;
  AES?: {
    encrypt(
      data: Uint8Array,
      key: Uint8Array,
      options: { mode: "CBC" | "ECB"; iv?: Uint8Array },
    ): ArrayBuffer;
  };
}

/** What `require("net")` and `require("tls")` have. */
export interface EspruinoSockets {
  connect(options: { host: string; port: number }, connected: () => void): EspruinoSocket;
}

/** Strings here are byte strings, one character per byte. */
export interface EspruinoSocket {
  on(event: "data", listener: (data: string) => void): void;
  on(event: "close", listener: () => void): void;
  on(event: "error", listener: (error: unknown) => void): void;
  on(event: "drain", listener: () => void): void;
  /** False: it was queued; wait for `drain`. */
  write(data: string): boolean;
  end(): void;
}
