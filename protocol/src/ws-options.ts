/**
 * The options with which both SDKs open a WebSocket of the package `ws`. Plain data: protocol does
 * not load `ws`.
 */
import { MAX_FRAGMENTS, MAX_MESSAGE_BYTES } from "./spec.ts";

/** How long the relay may take for the closing handshake before the socket is terminated. */
export const CLOSE_GRACE_MS = 2000;

export const WS_OPTIONS = {
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  /**
   * Pieces of one frame that ws keeps until it is complete; each costs more than its bytes. A
   * message of 64 KiB in the smallest segments that TCP must support (RFC 9293: 536 bytes) has 123.
   */
  maxBufferedChunks: 512,
  perMessageDeflate: false,
  followRedirects: false,
  /**
   * Per address of the relay, where it has several. Node's own quarter of a second is too short for
   * satellites and GPRS: IPv4 would be given up, and IPv6 not exist.
   */
  autoSelectFamilyAttemptTimeout: 2500,
  /**
   * Also applies if ws closes by itself, after a message over the limit or a protocol error. The
   * core gives up a link on which no message is completed.
   */
  closeTimeout: CLOSE_GRACE_MS,
};
