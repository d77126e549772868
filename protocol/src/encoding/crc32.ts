/**
 * CRC-32 of IEEE 802.3 (reflected, polynomial 0xEDB88320), used by tokens and boot-count slots. Bit
 * by bit: texts are short, and a table would cost a board 1 KB of RAM.
 *
 * [portable]
 */

/** Unsigned 32-bit checksum of the bytes. */
export const crc32 = (bytes: Uint8Array): number => {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) {
    crc ^= bytes[i] as number;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
};
