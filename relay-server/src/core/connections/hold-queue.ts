/**
 * Holds a connection's messages while the hub waits for a look-up or for the user's next turn, so
 * that each connection's messages are handled in order. If that takes long or the messages are
 * many, the link is asked to stop reading; what it had already read is bounded here.
 */

import {
  FREE_HELD_BYTES,
  HELD_BYTES,
  HELD_BYTES_PER_USER,
  HELD_OVERHEAD_BYTES,
} from "../limits/limits.ts";
import type { UserShare } from "../limits/user-share.ts";
import type { Connection, Content, HeldMessage } from "./connection.ts";

/** From now on messages are held. */
export const startHolding = (connection: Connection): void => {
  connection.held = [];
};

/** Charges a message that waits to its sender, until `discharge`; false if there is no room. */
export const charge = (
  connection: Connection,
  share: UserShare<Connection>,
  frame: Uint8Array,
): boolean => {
  const bytes = frame.length + HELD_OVERHEAD_BYTES;
  // A connection that has authenticated in the meantime is still charged to the unauthenticated
  // share.
  const heldBy = connection.heldBy ?? share;
  const own = connection.heldBytes + bytes;
  // One may be longer than that, where the relay accepts such messages.
  if (own > HELD_BYTES && connection.heldBytes > 0) return false;
  if (own > FREE_HELD_BYTES && heldBy.heldBytes + bytes > HELD_BYTES_PER_USER) return false;
  connection.heldBy = heldBy;
  connection.heldBytes += bytes;
  heldBy.heldBytes += bytes;
  return true;
};

export const discharge = (connection: Connection, frame: Uint8Array): void =>
  letGo(connection, frame.length + HELD_OVERHEAD_BYTES);

/**
 * Keeps a message for later; false if there is no room for it. The link is paused beyond
 * `unpausedBytes`, or at once while the user's connections hold much.
 */
export const hold = (
  connection: Connection,
  share: UserShare<Connection>,
  content: Content,
  frame: Uint8Array,
  unpausedBytes: number,
): boolean => {
  if (connection.held === null || !charge(connection, share, frame)) return false;
  connection.held.push({ content, frame });
  const isMuch = (connection.heldBy ?? share).heldBytes > HELD_BYTES_PER_USER / 2;
  if (!connection.paused && (isMuch || connection.heldBytes > unpausedBytes)) {
    connection.paused = true;
    connection.link.pause();
  }
  return true;
};

/** Handles the held messages in order, until one makes the rest wait again. */
export const release = (
  connection: Connection,
  handle: (content: Content, frame: Uint8Array) => void,
): void => {
  const held = connection.held ?? [];
  connection.held = null;
  for (const [at, { content, frame }] of held.entries()) {
    discharge(connection, frame);
    handle(content, frame);
    if (waitsAgain(connection)) {
      connection.held.push(...held.slice(at + 1));
      return;
    }
  }
  if (connection.paused && connection.held === null) {
    connection.paused = false;
    connection.link.resume();
  }
};

/** Discards the held messages, and discharges whatever waits. */
export const drop = (connection: Connection): void => {
  connection.held = null;
  letGo(connection, connection.heldBytes);
};

const letGo = (connection: Connection, bytes: number): void => {
  if (connection.heldBy === null) return; // dropped while they were handled
  connection.heldBytes -= bytes;
  connection.heldBy.heldBytes -= bytes;
  if (connection.heldBytes === 0) connection.heldBy = null;
};

const waitsAgain = (connection: Connection): connection is Connection & { held: HeldMessage[] } =>
  connection.held !== null;
