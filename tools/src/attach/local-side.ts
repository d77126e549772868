/** What programs of this machine use as the port: a pseudo-terminal, a TCP port, a pipe. */
import type { RemotePort, StatusLinesJson } from "@blindrelay/client-sdk/serial";

export interface LocalSide {
  /** For a person: where the port is now. */
  readonly where: string;
  /** Takes bytes from the device; `remote.taken` is called once they are passed on. */
  deliver(bytes: Uint8Array): void;
  /** The remote port has room. */
  writable(): void;
  /** The remote port is usable, or not for now. */
  up?(): void;
  down?(): void;
  changed?(lines: StatusLinesJson): void;
  close(): Promise<void>;
}

/** What a side needs of the remote port. */
export type Remote = Pick<
  RemotePort,
  "write" | "taken" | "room" | "configure" | "signals" | "purge" | "status" | "settings" | "isUp"
>;
