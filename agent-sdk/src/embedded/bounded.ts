/**
 * What a device with a small C stack and a small heap can take, checked before anything is parsed:
 * a relay can send any message before the agent has authenticated it, and a client any call.
 */
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { asciiBytes, utf8Bytes } from "@blindrelay/protocol/crypto";
import type { LinkPort } from "../ports.ts";
import { nestingOf } from "./nesting.ts";

/** Bytes of a call or an answer. One of 8 KB takes some 50 KB of heap while it is handled. */
export const SMALL_MAX_PLAINTEXT = 8192;
/** Levels: 1.5 KB of C stack in XS. No message of the contract has more than four. */
export const SMALL_MAX_NESTING = 32;

/** Names, signature and JSON around a packet, and the relay's own messages. */
const AROUND_PACKET = 2048;
const TAG_BYTES = 16;
/** RFC 6455, section 7.4.1: message too big. */
const TOO_BIG = 1009;

/** Bytes of the longest message that an agent with this limit of plaintexts has a use for. */
export const messageBytes = (maxPlaintext: number): number =>
  Math.min(MAX_MESSAGE_BYTES, Math.ceil((maxPlaintext + TAG_BYTES) / 3) * 4 + AROUND_PACKET);

/** Most texts have no character above U+00FF, and are bytes in all but name. */
const bytesOf = (text: string): Uint8Array =>
  /[^\0-\xff]/.test(text) ? utf8Bytes(text) : asciiBytes(text);

/**
 * A link port that ends a link with 1009 for a message over `maxMessage` bytes, and ignores one
 * nested deeper than `maxNesting` levels, as it would an unknown one.
 */
export const boundedLinks = (port: LinkPort, maxMessage: number, maxNesting: number): LinkPort => ({
  connect: (url, events) => {
    const link = port.connect(url, {
      opened: () => events.opened(),
      closed: (code, reason) => events.closed(code, reason),
      received: (text) => {
        if (text.length > maxMessage) link.close(TOO_BIG, "message too large");
        else if (nestingOf(bytesOf(text)) <= maxNesting) events.received(text);
      },
    });
    return link;
  },
});

/** Why a call is refused before it is parsed; undefined if it is not. */
export const tooDeep = (plaintext: Uint8Array, maxNesting: number): string | undefined => {
  const levels = nestingOf(plaintext);
  return levels > maxNesting
    ? `the call is nested ${levels} levels deep, at most ${maxNesting} fit`
    : undefined;
};
