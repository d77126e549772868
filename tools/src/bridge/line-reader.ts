/** Splits bytes into lines, whatever pieces and noise arrive, and computes their checksum. Pure. */

const LF = 10;
const CR = 13;

export interface LineReaderOptions {
  readonly maxLine: number;
  readonly encoding: "utf8" | "latin1";
  readonly checksum: "none" | "nmea";
}

export class LineReader {
  /** Lines dropped: too long, not of this encoding, a wrong checksum. */
  dropped = 0;
  private readonly options: LineReaderOptions;
  private readonly found: (line: string) => void;
  private readonly decoder: TextDecoder;
  private readonly buffer: Uint8Array;
  private length = 0;
  private skipping = false;

  constructor(options: LineReaderOptions, found: (line: string) => void) {
    this.options = options;
    this.found = found;
    this.decoder = new TextDecoder(options.encoding, { fatal: true, ignoreBOM: true });
    this.buffer = new Uint8Array(options.maxLine);
  }

  receive(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (byte === LF) this.finish();
      else if (this.length < this.buffer.length) this.buffer[this.length++] = byte;
      else this.skipping = true;
    }
  }

  private finish(): void {
    const skipped = this.skipping;
    let { length } = this;
    this.length = 0;
    this.skipping = false;
    while (length > 0 && this.buffer[length - 1] === CR) length--;
    if (length === 0 && !skipped) return;
    const line = skipped ? null : this.decode(this.buffer.subarray(0, length));
    if (line === null) this.dropped++;
    else this.found(line);
  }

  private decode(bytes: Uint8Array): string | null {
    let text: string;
    try {
      text = this.decoder.decode(bytes);
    } catch {
      return null;
    }
    return this.options.checksum === "none" ? text : withoutChecksum(text);
  }
}

/** XOR of the characters after a leading $ (NMEA 0183), as two hexadecimal digits. */
export const nmeaChecksum = (text: string): string => {
  let xor = 0;
  for (const byte of Buffer.from(text.startsWith("$") ? text.slice(1) : text)) xor ^= byte;
  return xor.toString(16).toUpperCase().padStart(2, "0");
};

const withoutChecksum = (line: string): string | null => {
  const star = line.length - 3;
  if (star < 0 || line[star] !== "*") return null;
  const text = line.slice(0, star);
  return line.slice(star + 1).toUpperCase() === nmeaChecksum(text) ? text : null;
};
