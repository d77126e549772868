/**
 * Keeps a port open: opens it, passes it to its user, and when it disappears reopens it, with
 * growing pauses, until it is back. Unplugging never requires a restart. Writes have a deadline, so
 * that an XOFF that never ends counts as a lost port.
 */

import {
  messageOf,
  type OpenPort,
  PortError,
  type PortOpener,
  type PortUser,
} from "@blindrelay/agent-sdk/bridge";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";
import type { LineSettings } from "@blindrelay/protocol/serial";

const REOPEN_FIRST_MS = 250;
const REOPEN_MAX_MS = 10_000;
/** A port that stayed open this long was good, and the pauses start over. */
const STABLE_MS = 10_000;
/** One write to the port: small enough that its deadline is meaningful at 300 baud. */
const PIECE_BYTES = 1_024;
/** At higher rates it is what the line takes in an eighth of a second: each write costs a call. */
const PIECES_PER_SECOND = 8;
const BITS_PER_BYTE = 11;

interface SupervisorOptions {
  readonly open: PortOpener;
  readonly settings: LineSettings;
  /** How long a piece may wait in addition to the time of its bits. */
  readonly writeTimeoutMs: number;
  /** Between two bytes, for a device that is slower than its line. */
  readonly byteDelayMs?: number;
  readonly timer: TimerPort;
  /** A port is open. An exception ends the supervision, unless it may pass; see `failed`. */
  use(port: OpenPort): Promise<PortUser>;
  /** Whether `use` may succeed later after this failure: then the port counts as absent. */
  mayPass(error: unknown): boolean;
  /**
   * For people: the port opened, was lost, or could not be opened; `waitMs` to the next attempt,
   * counted from when the system has closed the port.
   */
  report(state: "open" | "lost" | "absent", reason: string, waitMs: number): void;
  /** `use` failed: there are no further attempts. */
  failed(error: unknown): void;
}

export class PortSupervisor {
  private readonly options: SupervisorOptions;
  private settings: LineSettings;
  private attempts = 0;
  private stopped = false;
  private waiting: unknown = null;
  private current: { readonly port: OpenPort; readonly over: Promise<void> } | null = null;
  private absence = "";

  constructor(options: SupervisorOptions) {
    this.options = options;
    this.settings = options.settings;
  }

  start(): void {
    this.openNow();
  }

  /** Closes the port and waits for its user to end. */
  async stop(): Promise<void> {
    this.stopped = true;
    if (this.waiting !== null) this.options.timer.clear(this.waiting);
    this.waiting = null;
    const { current } = this;
    if (current === null) return;
    await current.port.close();
    await current.over;
  }

  private openNow(): void {
    this.life().then(
      (reason) => this.again(reason),
      (error) => this.options.failed(error),
    );
  }

  /** From one opening to its end. Rejects only if `use` did, for good. */
  private async life(): Promise<string> {
    const { open, timer, use, mayPass, report } = this.options;
    let user: PortUser | null = null;
    const early: Uint8Array[] = [];
    const { promise: gone, resolve: closed } = Promise.withResolvers<string>();
    let port: OpenPort;
    try {
      port = await open(this.settings, {
        data: (bytes) => {
          if (user === null) early.push(bytes);
          else user.data(bytes);
        },
        closed,
      });
    } catch (error) {
      return messageOf(error);
    }
    if (this.stopped) {
      await port.close();
      return "stopped";
    }
    const openedAt = timer.now();
    const { promise: over, resolve: finish } = Promise.withResolvers<void>();
    this.current = { port, over };
    this.absence = "";
    report("open", "", 0);
    try {
      // What the device sends meanwhile waits in the system's buffer, which is bounded.
      port.pause();
      try {
        user = await use(this.guarded(port, closed));
      } catch (error) {
        if (mayPass(error)) return messageOf(error);
        throw error;
      }
      for (const bytes of early.splice(0)) user.data(bytes);
      port.resume();
      const reason = await gone;
      await user.end(reason);
      if (timer.now() - openedAt >= STABLE_MS) this.attempts = 0;
      if (!this.stopped) report("lost", reason, this.waitMs());
      return "";
    } finally {
      // After XOFF the system may wait long for bytes to leave; until then, the port is locked.
      await port.close();
      this.current = null;
      finish();
    }
  }

  private waitMs(): number {
    return Math.min(REOPEN_MAX_MS, REOPEN_FIRST_MS * 2 ** Math.min(this.attempts, 10));
  }

  /** `reason`: why it could not be opened; "" if it was open and got lost. */
  private again(reason: string): void {
    if (this.stopped) return;
    const { timer, report } = this.options;
    const waitMs = this.waitMs();
    this.attempts++;
    // The same state is reported once, not at every attempt.
    if (reason !== "" && reason !== this.absence) report("absent", reason, waitMs);
    this.absence = reason;
    this.waiting = timer.set(waitMs, () => {
      this.waiting = null;
      this.openNow();
    });
  }

  /** The port with deadlines on its writes, and settings that are kept when it is reopened. */
  private guarded(port: OpenPort, closed: (reason: string) => void): OpenPort {
    return {
      ...port,
      write: async (bytes) => {
        const { timer, byteDelayMs = 0 } = this.options;
        const rateBytes = Math.floor(this.settings.baudRate / BITS_PER_BYTE / PIECES_PER_SECOND);
        const size = byteDelayMs > 0 ? 1 : Math.max(PIECE_BYTES, rateBytes);
        for (let at = 0; at < bytes.length; at += size) {
          await this.writePiece(port, bytes.subarray(at, at + size), closed);
          if (byteDelayMs > 0) await new Promise<void>((go) => timer.set(byteDelayMs, go));
        }
      },
      configure: async (settings) => {
        await port.configure(settings);
        this.settings = settings;
      },
    };
  }

  private writePiece(
    port: OpenPort,
    bytes: Uint8Array,
    closed: (reason: string) => void,
  ): Promise<void> {
    const { timer, writeTimeoutMs } = this.options;
    const bitsMs = (bytes.length * BITS_PER_BYTE * 1000) / this.settings.baudRate;
    return new Promise((resolve, reject) => {
      const deadline = timer.set(writeTimeoutMs + bitsMs, () => {
        const text = `the device takes no bytes for ${writeTimeoutMs / 1000} s (XOFF, or CTS is off?)`;
        reject(new PortError("stalled", text));
        closed(text);
        void port.close();
      });
      const written = port.write(bytes).finally(() => timer.clear(deadline));
      written.then(resolve, reject);
    });
  }
}
