/**
 * What a device with a small C stack and a small heap can take, checked before anything is parsed:
 * a relay can send any message before the agent has authenticated it, and a client any call.
 */
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { PIECE_LENGTH } from "@blindrelay/protocol/crypto";
import { decodeForAgent } from "@blindrelay/protocol/wire";
import type { LinkPort } from "../ports.ts";
import type { KnownNames } from "./names.ts";
import { shapeOf } from "./shape.ts";

/** Bytes of a call or an answer. One of 8 KB takes some 50 KB of heap while it is handled. */
export const SMALL_MAX_PLAINTEXT = 8192;
/**
 * Levels. A handler may return what it was given, and XS's `JSON.stringify` takes 464 bytes of C
 * stack a level (its `JSON.parse` 48): of 8 KB, eight levels leave room for two that the handler
 * adds. No message of the contract has more than four.
 */
export const SMALL_MAX_NESTING = 8;
/** A call may have one value for so many bytes of the longest: what these take in XS is as long. */
const BYTES_PER_VALUE = 8;
/** A packet, and each of the relay's messages, has ten at most. */
const MESSAGE_VALUES = 64;

/** Names, signature and JSON around a packet, and the relay's own messages. */
const AROUND_PACKET = 2048;
const TAG_BYTES = 16;
/** RFC 6455, section 7.4.1: message too big. */
const TOO_BIG = 1009;

/** Bytes of the longest message that an agent with this limit of plaintexts has a use for. */
export const messageBytes = (maxPlaintext: number): number =>
  Math.min(MAX_MESSAGE_BYTES, Math.ceil((maxPlaintext + TAG_BYTES) / 3) * 4 + AROUND_PACKET);

/** What stands for a character that is none of JSON's own. */
const OTHER = 127;

/**
 * A text's characters, for `shapeOf`. Not its UTF-8, which takes an array of numbers on the way:
 * 16 bytes a number in XS, more than a small heap has. In pieces: see PIECE_LENGTH.
 */
const charactersOf = (text: string): Uint8Array => {
  const length = text.length;
  const bytes = new Uint8Array(length);
  for (let start = 0; start < length; start += PIECE_LENGTH) {
    const piece = text.substring(start, start + PIECE_LENGTH);
    const end = Math.min(PIECE_LENGTH, length - start);
    for (let i = 0; i < end; i++) bytes[start + i] = Math.min(piece.charCodeAt(i), OTHER);
  }
  return bytes;
};

/** What is checked before a text is parsed. */
interface TextBounds {
  /** Levels. */
  readonly maxNesting: number;
  /** Null where the engine does not keep names. */
  readonly names: KnownNames | null;
}

interface CallBounds extends TextBounds {
  /** Bytes. */
  readonly maxPlaintext: number;
}

/**
 * A link port that ends a link with 1009 for a message over `maxMessage` bytes, and ignores one
 * that is nested too deep or has too many values or new names, as it would an unknown one; so is
 * the packet in an envelope.
 */
export const boundedLinks = (
  port: LinkPort,
  maxMessage: number,
  { maxNesting, names }: TextBounds,
): LinkPort => {
  const fits = (text: string): boolean => {
    const characters = charactersOf(text);
    const { levels, values } = shapeOf(characters);
    if (levels > maxNesting || values > MESSAGE_VALUES) return false;
    return names === null || names.admit(characters);
  };
  const connect: LinkPort["connect"] = (url, events) => {
    const link = port.connect(url, {
      opened: () => events.opened(),
      closed: (code, reason) => events.closed(code, reason),
      received: (text) => {
        if (text.length > maxMessage) {
          link.close(TOO_BIG, "message too large");
          return;
        }
        if (!fits(text)) return;
        // A packet in an envelope is a text in a text, which is parsed, too.
        const message = decodeForAgent(text);
        const isInside = message.kind === "packet" && message.form.enveloped;
        if (!isInside || fits(message.text)) events.received(text);
      },
    });
    return link;
  };
  return { connect };
};

/** Why a call is refused before it is parsed; undefined if it is not. */
export const refusal = (
  plaintext: Uint8Array,
  { maxPlaintext, maxNesting, names }: CallBounds,
): string | undefined => {
  const { levels, values } = shapeOf(plaintext);
  const maxValues = Math.floor(maxPlaintext / BYTES_PER_VALUE);
  if (levels > maxNesting)
    return `the call is nested ${levels} levels deep, at most ${maxNesting} fit`;
  if (values > maxValues) return `the call has ${values} values, at most ${maxValues} fit`;
  if (names !== null && !names.admit(plaintext))
    return "the call has more new property names than this device can keep";
  return undefined;
};
