/** The global that our host in C gives to JavaScript on the chip: host/machine.c. */
declare const chip: {
  /** Milliseconds since the start; wraps at 32 bits. */
  now(): number;
  /** `onAlarm` follows once, `ms` from now at the earliest; a later call replaces this one. */
  alarm(ms: number): void;
  /** To the line. */
  write(bytes: Uint8Array): void;
  print(line: string): void;
  /** A value of the flash. */
  get(key: string): ArrayBuffer | undefined;
  put(key: string, value: ArrayBuffer): void;
  hmac(key: Uint8Array, data: Uint8Array): ArrayBuffer;
  /** AES-128 of whole blocks (ECB). */
  aes(key: ArrayBuffer, blocks: Uint8Array): ArrayBuffer;
  random(length: number): ArrayBuffer;
  /** What was given to this start. */
  argument(): string;
  exit(code: number): void;
  /** The number of the engine's build. */
  build(): string;
  /** Runs the module in a slot for programs; its default export. */
  program(slot: number): unknown;
  erase(slot: number): void;
  store(slot: number, at: number, bytes: Uint8Array): void;
  /** SHA-256 of the slot's first bytes. */
  digest(slot: number, length: number): ArrayBuffer;
  /** Why the start before this one failed, or "". */
  why(): string;
  /** Arms the watchdog, which is fed between events. From now on a failure restarts the chip. */
  watch(ms: number): void;
  restart(): void;
  /** See FIGURES in ../chip.ts. */
  figure(index: number): number;
};

declare var onAlarm: () => void;
/** Bytes from the line: up to a zero byte, or the part that fits. */
declare var onData: (bytes: ArrayBuffer) => void;

/** Every file of protocol/vectors. */
declare module "vector-files" {
  const files: import("@blindrelay/protocol/testing").VectorFiles;
  export default files;
}

/** What the process on the host wants to run. */
declare module "device-program" {
  const program: import("../../src/core/agent.ts").Program;
  export default program;
}

/** Byte code, in base64url. */
declare module "pushed-programs" {
  const programs: readonly {
    readonly data: string;
    readonly size: number;
    readonly sha256: string;
  }[];
  export default programs;
}
