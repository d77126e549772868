/** Sends an artifact: finds the bytes that a Range asks for, and sends them in parts. */
import { Readable } from "node:stream";
import type { Db } from "../store/open.ts";
import { PART_BYTES, readPart } from "../store/uploads.ts";

/** `from` to `to`, both included. */
interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * What a Range header asks for (RFC 9110 section 14): one range; `null` if it asks for nothing or
 * for several, which is answered with the whole; "unsatisfiable" where it is outside of the
 * artifact.
 */
export const readRange = (
  header: string | undefined,
  size: number,
): ByteRange | "unsatisfiable" | null => {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? "");
  if (match === null) return null;
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return null;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { from: size - length, to: size - 1 };
  }
  const from = Number(first);
  const to = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < from) return null; // invalid, so ignored
  return from >= size ? "unsatisfiable" : { from, to };
};

/** The bytes of a range, read from the store as the reader takes them. */
export const artifactStream = (db: Db, uploadId: string, range: ByteRange): Readable =>
  Readable.from(partsOf(db, uploadId, range), { objectMode: false });

async function* partsOf(db: Db, uploadId: string, { from, to }: ByteRange) {
  for (let at = from; at <= to; ) {
    const part = Math.floor(at / PART_BYTES);
    const bytes = await readPart(db, uploadId, part);
    const start = at - part * PART_BYTES;
    const taken = bytes?.subarray(start, start + to - at + 1);
    if (taken === undefined || taken.length === 0) throw new Error("an artifact lacks a part");
    yield taken;
    at += taken.length;
  }
}
