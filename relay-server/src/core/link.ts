/** One peer's link, as the hub sees it, and what a peer reports about itself when it logs in. */
export type { AgentReport, ClientType } from "@blindrelay/protocol/wire";

/** One text message as it goes out: bytes as received, or ASCII text that the relay wrote. */
export type Frame = Uint8Array | string;

/** One live WebSocket, as the hub sees it. None of these calls the hub back before it returns. */
export interface HubLink {
  /**
   * Queues one text message. The hub has checked `queued` before; the link never refuses. Bytes
   * belong to the link from then on, which frees them once they are written.
   */
  send(frame: Frame): void;
  /** Bytes handed to `send` that the operating system has not accepted yet. */
  queued(): number;
  /** Starts the closing handshake after all queued messages; `hub.closed` follows, now or later. */
  close(code: number, reason: string): void;
  /** Stops reading until `resume`; messages that were already read may still be delivered. */
  pause(): void;
  resume(): void;
  /** A message that arrived on this link is not forwarded. The link may free its bytes at once. */
  unused?(frame: Uint8Array): void;
}
