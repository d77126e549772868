/** One peer's link, as the hub sees it, and what a peer says of itself when it logs in. */
export type { AgentReport, ClientType } from "@blindrelay/protocol/wire";

/** One text message as it goes out: bytes as received, or ASCII text that the relay wrote. */
export type Frame = Uint8Array | string;

/** One live WebSocket, as the hub sees it. None of these calls the hub back before it returns. */
export interface HubLink {
  /**
   * Queues one text message. The hub asked `queued` before; the link never refuses. Bytes are the
   * link's from then on, which frees them once they are written.
   */
  send(frame: Frame): void;
  /** Bytes handed to `send` that the operating system has not taken yet. */
  queued(): number;
  /** Starts the closing handshake after all queued messages; `hub.closed` follows, now or later. */
  close(code: number, reason: string): void;
  /** Reads nothing more until `resume`; messages already read may still be delivered. */
  pause(): void;
  resume(): void;
  /** A message that came on this link is not sent on. The link may free its bytes at once. */
  unused?(frame: Uint8Array): void;
}
