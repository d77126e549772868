/**
 * What a program's storage (program-storage.ts) needs of natives.ts, which would bring its parsers
 * along.
 *
 * [portable]
 */
declare const E: { toUint8Array(text: string): Uint8Array; CRC32(bytes: Uint8Array): number };

export const asciiBytes = E.toUint8Array;
/** A character is a byte there. */
export const utf8Bytes = E.toUint8Array;
export const crc32 = E.CRC32;
