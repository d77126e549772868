/**
 * A byte line to a device, whatever carries it: a serial port, TCP, or a port server over RFC 2217.
 * Openers differ (local.ts, tcp.ts, rfc2217.ts); an open port works as described here.
 */

import type { LineSettings } from "@blindrelay/protocol/serial";

/** Lines that we drive. `break` holds the line low until it is set to false. */
export interface ControlLines {
  readonly dtr?: boolean | undefined;
  readonly rts?: boolean | undefined;
  readonly break?: boolean | undefined;
}

/**
 * How a port is opened and left: DTR and RTS as soon as it is open (the system raises both before
 * that), and whether it lowers them when it is closed, which restarts many boards.
 */
export interface OpeningLines {
  readonly dtr?: boolean | undefined;
  readonly rts?: boolean | undefined;
  readonly hupcl?: boolean | undefined;
}

/** Lines that the device drives; null if they are unknown. */
export interface StatusLines {
  readonly cts: boolean | null;
  readonly dsr: boolean | null;
  readonly dcd: boolean | null;
}

export const NO_STATUS: StatusLines = { cts: null, dsr: null, dcd: null };

export interface PortEvents {
  /** Bytes from the device; the receiver may keep them. */
  data(bytes: Uint8Array): void;
  /** Called once, also after `close`: the port is gone. `reason`: for a person. */
  closed(reason: string): void;
}

export interface OpenPort {
  /**
   * Resolves when the system has accepted every byte, which is the back-pressure: await it before
   * the next. Rejects with a PortError if the port is gone.
   */
  write(bytes: Uint8Array): Promise<void>;
  /**
   * Stops and starts reading; the system's buffer then fills, and flow control, if enabled, pauses
   * the device.
   */
  pause(): void;
  resume(): void;
  /** Rejects with a PortError if the line cannot do it. */
  configure(settings: LineSettings): Promise<void>;
  control(lines: ControlLines): Promise<void>;
  status(): Promise<StatusLines>;
  /** Resolves when it is closed. Harmless when repeated. */
  close(): Promise<void>;
}

/** The user of an open port, from its opening to its end. */
export interface PortUser {
  data(bytes: Uint8Array): void;
  /** The port is gone. Awaited before the port is opened again. */
  end(reason: string): Promise<void>;
}

/** Opens the port; rejects with a PortError. Nothing is reported before it resolves. */
export type PortOpener = (settings: LineSettings, events: PortEvents) => Promise<OpenPort>;

/**
 * `gone`: unplugged, closed or never present; `stalled`: accepts no bytes; `unsupported`: this line
 * cannot do it.
 */
export type PortProblem = "gone" | "stalled" | "unsupported";

export class PortError extends Error {
  readonly problem: PortProblem;

  constructor(problem: PortProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "PortError";
    this.problem = problem;
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
