/** Sends an artifact: finds the bytes that a Range asks for, and sends them in parts. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
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

/** As much as node's sockets take before they are full: a reader that stalls holds one piece. */
const PIECE_BYTES = 65_536;

/**
 * The bytes of a range, read from the store as the reader takes them, each piece in a turn of its
 * own. Nothing is read for a response that waits for those before it on its connection.
 */
export const artifactStream = (
  db: Db,
  uploadId: string,
  range: ByteRange,
  response: ServerResponse,
  turn: () => Promise<void>,
): Readable => {
  const pieces = piecesOf(db, uploadId, range, response, turn);
  // Unlike this, Readable.from reads ahead.
  return new Readable({
    highWaterMark: 0,
    read(): void {
      pieces.next().then(
        ({ value }) => this.push(value ?? null),
        (error) => this.destroy(error),
      );
    },
  });
};

async function* piecesOf(
  db: Db,
  uploadId: string,
  { from, to }: ByteRange,
  response: ServerResponse,
  turn: () => Promise<void>,
): AsyncGenerator<Uint8Array, undefined> {
  if (response.socket === null) await once(response, "socket");
  for (let at = from; at <= to; ) {
    const part = Math.floor(at / PART_BYTES);
    const start = at - part * PART_BYTES;
    const length = Math.min(PIECE_BYTES, PART_BYTES - start, to - at + 1);
    await turn();
    const bytes = await readPart(db, uploadId, part, start, length);
    if (bytes === undefined || bytes.length === 0) throw new Error("an artifact lacks a part");
    yield bytes;
    at += bytes.length;
  }
}
