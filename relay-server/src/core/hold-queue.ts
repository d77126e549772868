/**
 * While the hub waits for a look-up, what the same connection sends next waits too, so that each
 * connection's messages are handled in order. The link is asked to read no more meanwhile; what it
 * had read already is bounded here.
 */
import type { Connection } from "./connection.ts";
import { HELD_BYTES, HELD_OVERHEAD_BYTES } from "./limits.ts";

/** From now on messages wait. */
export const startHolding = (connection: Connection): void => {
  connection.held = [];
};

/** Keeps a message for later; false when there is no room for it. */
export const hold = (connection: Connection, text: string | null, frame: Uint8Array): boolean => {
  const bytes = frame.length + HELD_OVERHEAD_BYTES;
  if (connection.held === null || connection.heldBytes + bytes > HELD_BYTES) {
    return false;
  }
  connection.heldBytes += bytes;
  connection.held.push({ text, frame });
  if (!connection.paused) {
    connection.paused = true;
    connection.link.pause();
  }
  return true;
};

/** Hands in what waited, in order. Handling one may start another look-up; the rest waits again. */
export const release = (
  connection: Connection,
  handle: (text: string | null, frame: Uint8Array) => void,
): void => {
  const held = connection.held ?? [];
  connection.held = null;
  connection.heldBytes = 0;
  for (const { text, frame } of held) {
    handle(text, frame);
  }
  if (connection.paused && connection.held === null) {
    connection.paused = false;
    connection.link.resume();
  }
};
