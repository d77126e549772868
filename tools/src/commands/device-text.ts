/**
 * What a device prints, as text, in whatever pieces its bytes come. Characters and control
 * sequences that are not complete wait for their rest. Pure.
 */

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The beginning of a control sequence; a longer one is none, and no text goes over a line end. */
const UNFINISHED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /\x1b(?:\[[0-?]{0,32}[ -/]{0,2}|[ -/]{1,2}|[\]PX^_][^\x07\x1b\r\n]{0,200}\x1b?)?$/;

/** Where an unfinished UTF-8 character begins, or the length. */
const completeLength = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
};

export class DeviceText {
  private bytes = new Uint8Array(0);
  private sequence = "";

  /** UTF-8; where that is impossible, ISO 8859-1. */
  read(piece: Uint8Array): string {
    const all = Buffer.concat([this.bytes, piece]);
    const length = completeLength(all);
    this.bytes = all.subarray(length);
    const text = this.sequence + decode(all.subarray(0, length));
    this.sequence = UNFINISHED.exec(text)?.[0] ?? "";
    return text.slice(0, text.length - this.sequence.length);
  }

  /** Nothing follows: what waited for its rest. */
  end(): string {
    const { sequence } = this;
    this.sequence = "";
    return sequence;
  }
}

const decode = (bytes: Buffer): string => {
  try {
    return utf8.decode(bytes);
  } catch {
    return bytes.toString("latin1");
  }
};
