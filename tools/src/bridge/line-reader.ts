/** Splits bytes into lines, whatever pieces and noise arrive, and computes their checksum. Pure. */

/** A transceiver that turns round, or a break, comes as one; text has none. */
const NUL = 0;
const LF = 10;
const CR = 13;
/** Of a line that is shown to a person. */
const SHOWN_CHARACTERS = 40;

export type LineEncoding = "utf8" | "latin1";

interface LineReaderOptions {
  readonly maxLine: number;
  readonly encoding: LineEncoding;
  readonly checksum: "none" | "nmea";
}

/** Everything that has come, and what of it was dropped, by reason. */
export interface LineCounts {
  readonly bytes: number;
  readonly lines: number;
  readonly tooLong: number;
  readonly undecodable: number;
  readonly wrongChecksum: number;
}

const NOTHING: LineCounts = { bytes: 0, lines: 0, tooLong: 0, undecodable: 0, wrongChecksum: 0 };

/** CR, LF, CR LF and LF CR end a line: empty lines are ignored. */
export class LineReader {
  counts = NOTHING;
  private readonly options: LineReaderOptions;
  private readonly found: (line: string) => void;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  private readonly buffer: Uint8Array;
  private length = 0;
  private skipping = false;
  private fragment = false;
  private last = "";

  constructor(options: LineReaderOptions, found: (line: string) => void) {
    this.options = options;
    this.found = found;
    this.buffer = new Uint8Array(options.maxLine);
  }

  get dropped(): number {
    const { tooLong, undecodable, wrongChecksum } = this.counts;
    return tooLong + undecodable + wrongChecksum;
  }

  receive(bytes: Uint8Array): void {
    this.count("bytes", bytes.length);
    for (const byte of bytes) {
      if (byte === LF || byte === CR) this.finish();
      else if (byte === NUL) continue;
      else if (this.length < this.buffer.length) this.buffer[this.length++] = byte;
      else this.skipping = true;
    }
  }

  /** Ignores what comes before the next line end: the rest of a line. */
  dropFragment(): void {
    this.fragment = true;
  }

  /** Forgets the beginning of a line, which the next one would be taken for a part of. */
  dropBegun(): void {
    this.length = 0;
    this.skipping = false;
  }

  /** What has come since `before` and was no answer, for the person who waited for one. */
  since(before: LineCounts): string {
    const now = this.counts;
    const more = (name: keyof LineCounts): number => now[name] - before[name];
    const told = (count: number, what: string, and: string): string[] =>
      count === 0 ? [] : [`${count} ${count === 1 ? what : `${what}s`} ${and}`];
    const parts = [
      ...told(more("lines"), "other line", `came, the last: ${shown(this.last)}`),
      ...told(more("undecodable"), "line", 'came not in UTF-8 (is "encoding" "latin1"?)'),
      ...told(more("tooLong"), "line", `came longer than max_line (${this.options.maxLine})`),
      ...told(more("wrongChecksum"), "line", "came without the right checksum"),
      ...told(this.length, "byte", "came without a line end"),
    ];
    if (parts.length > 0) return parts.join("; ");
    return more("bytes") === 0 ? "nothing came" : "only line ends came";
  }

  private count(name: keyof LineCounts, by = 1): void {
    this.counts = { ...this.counts, [name]: this.counts[name] + by };
  }

  private finish(): void {
    const { skipping, length, fragment } = this;
    this.dropBegun();
    this.fragment = false;
    if (fragment) return;
    if (skipping) this.count("tooLong");
    else if (length > 0) this.take(this.buffer.subarray(0, length));
  }

  private take(bytes: Uint8Array): void {
    const text = this.decode(bytes);
    if (text === null) {
      this.count("undecodable");
      return;
    }
    const { checksum, encoding } = this.options;
    const line = checksum === "none" ? text : withoutChecksum(text, encoding);
    if (line === null) {
      this.count("wrongChecksum");
      return;
    }
    this.count("lines");
    this.last = line.slice(0, SHOWN_CHARACTERS);
    this.found(line);
  }

  private decode(bytes: Uint8Array): string | null {
    // TextDecoder takes "latin1" for windows-1252, where 0x80 is the euro sign.
    if (this.options.encoding === "latin1") return Buffer.from(bytes).toString("latin1");
    try {
      return this.decoder.decode(bytes);
    } catch {
      return null;
    }
  }
}

const shown = (line: string): string =>
  JSON.stringify(line.length < SHOWN_CHARACTERS ? line : `${line}…`);

/** XOR of the bytes after a leading $ (NMEA 0183), as two hexadecimal digits. */
export const nmeaChecksum = (text: string, encoding: LineEncoding): string => {
  let xor = 0;
  for (const byte of Buffer.from(text.startsWith("$") ? text.slice(1) : text, encoding)) {
    xor ^= byte;
  }
  return xor.toString(16).toUpperCase().padStart(2, "0");
};

const withoutChecksum = (line: string, encoding: LineEncoding): string | null => {
  const star = line.length - 3;
  if (star < 0 || line[star] !== "*") return null;
  const text = line.slice(0, star);
  return line.slice(star + 1).toUpperCase() === nmeaChecksum(text, encoding) ? text : null;
};
