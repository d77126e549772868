/**
 * The parts of the Moddable SDK (8.2) that this edge uses. index.ts passes the modules in, so the
 * same edge runs on stand-ins: under Node in tests, and in XS alone.
 */

/** `import Timer from "timer"`. Milliseconds become a 32-bit integer. */
export interface ModdableTimer {
  set(fn: () => void, ms?: number): unknown;
  clear(timer: unknown): void;
}

/** `import Time from "time"`. Ticks are milliseconds; on microcontrollers they wrap at 32 bits. */
export interface ModdableTime {
  readonly ticks: number;
  /** From one tick count to another, correct across one wrap. */
  delta(start: number, end: number): number;
}

/** `import values from "blindrelay/values"`: a domain of key-value storage as in ECMA-419. */
export interface ModdableValues {
  read(key: string): unknown;
  write(key: string, value: ArrayBuffer): void;
}

/**
 * `import { Digest, BlockCipher, Mode } from "crypt"` and `import HMAC from "hmac"`, as far as
 * available.
 */
export interface ModdableCrypt {
  readonly Digest?: new (type: "SHA256") => object;
  readonly HMAC?: new (
    digest: object,
    key: Uint8Array,
  ) => {
    process(data: Uint8Array): ArrayBuffer;
  };
  readonly BlockCipher?: new (cipher: "AES", key: ArrayBuffer) => object;
  readonly Mode?: new (
    mode: "CBC" | "ECB",
    cipher: object,
    iv?: ArrayBuffer,
  ) => {
    encrypt(data: Uint8Array): ArrayBuffer;
  };
}

/** A WebSocket client as defined by ECMA-419 (`embedded:network/websocket/client`). */
export interface EcmaWebSocket {
  /** Up to `count` bytes of the message that onReadable announced; undefined if there are none. */
  read(count: number): ArrayBuffer | undefined;
  /** Returns how many bytes the next write may contain. Throws if the data does not fit. */
  write(
    data: Uint8Array,
    options: { readonly binary: boolean; readonly more: boolean } | { readonly opcode: number },
  ): number;
  close(): void;
}

export interface EcmaWebSocketOptions {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Part of a message; `more`: it continues, in this frame or another. */
  onReadable(count: number, options: { readonly more: boolean; readonly binary?: boolean }): void;
  /** The connection is open, or accepts more; `count` bytes may be written. */
  onWritable(count: number): void;
  /** A complete control frame; the client itself answers pings and closes. */
  onControl(opcode: number, data: ArrayBuffer): void;
  onClose(): void;
  onError(): void;
}

/** A TCP or TLS socket of ECMA-419, such as `embedded:io/socket/tcp`. */
interface EcmaSocket {
  format: string;
  read(count?: unknown): unknown;
  write(data: unknown): unknown;
}

export interface EcmaSocketOptions {
  /** `count` bytes can be read, or may be written. */
  readonly onReadable?: (count: number) => void;
  readonly onWritable?: (count: number) => void;
  readonly onError?: () => void;
}

// biome-ignore lint/suspicious/noExplicitAny: TypeScript asks for exactly this of a class to extend.
export type EcmaSocketClass = new (...args: any[]) => EcmaSocket;

/** How to reach the network: `device.network.ws` or `.wss` of ECMA-419, which also has `dns`. */
export interface EcmaNetwork {
  readonly io: new (options: EcmaWebSocketOptions) => EcmaWebSocket;
  /** `TCP`: below a TLS socket. */
  readonly socket?: {
    readonly io: EcmaSocketClass;
    readonly TCP?: { readonly io: EcmaSocketClass };
  };
}
