/**
 * Writes files to a board's Storage: chunks of 384 bytes as base64, each confirmed before the next,
 * then length and CRC-32 read back from flash.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { crc32 } from "@blindrelay/protocol/crypto";
import { answerOf, isNumber } from "./answer.ts";
import { BoardFailure } from "./failure.ts";
import { BoardError, type EspruinoRepl } from "./repl.ts";

const CHUNK_BYTES = 384;
/** A file's head in Storage, and its padding. */
const HEADER_BYTES = 32;
const PAD_BYTES = 8;
const TRIES = 3;
/** Erasing a page of flash, or compacting all of it, is slow. */
const SLOW_MS = 60_000;

export interface BoardFile {
  readonly name: string;
  /** A byte string. */
  readonly content: string;
}

/** `done` of `total` bytes have arrived. */
export type Progress = (file: string, done: number, total: number) => void;

const STORAGE = 'require("Storage")';

const bytesOf = ({ content }: BoardFile): Uint8Array =>
  Uint8Array.from(content, (byte) => byte.charCodeAt(0));

/** The space that a file takes in Storage. */
export const sizeOnBoard = (file: BoardFile): number =>
  Math.ceil(file.content.length / PAD_BYTES) * PAD_BYTES + HEADER_BYTES;

/** Whether the board has exactly this content, by length and CRC-32. */
export const isOnBoard = async (board: EspruinoRepl, file: BoardFile): Promise<boolean> => {
  const name = JSON.stringify(file.name);
  const held = await board.evaluate(
    `(function(){var b=${STORAGE}.readArrayBuffer(${name});return b?[b.length||b.byteLength,E.CRC32(b)>>>0]:null})()`,
    SLOW_MS,
  );
  if (!Array.isArray(held) || !isNumber(held[1])) return false;
  return held[0] === file.content.length && held[1] >>> 0 === crc32(bytesOf(file));
};

const writeChunks = async (
  board: EspruinoRepl,
  file: BoardFile,
  progress: Progress,
): Promise<void> => {
  const { content } = file;
  const name = JSON.stringify(file.name);
  for (let at = 0; at < content.length; at += CHUNK_BYTES) {
    const chunk = content.slice(at, at + CHUNK_BYTES);
    const write = `${STORAGE}.write(${name},atob("${btoa(chunk)}"),${at},${content.length})`;
    let taken: unknown;
    try {
      taken = await board.evaluate(`!!${write}`, SLOW_MS);
    } catch (error) {
      throw refused(file, error);
    }
    if (taken !== true) {
      const why = `the board does not accept ${file.name}: Storage.write() failed`;
      throw new BoardFailure("refused", why);
    }
    progress(file.name, at + chunk.length, content.length);
  }
};

const refused = (file: BoardFile, error: unknown): unknown =>
  error instanceof BoardError
    ? new BoardFailure("refused", `the board does not accept ${file.name}: ${error.said}`, error)
    : error;

/**
 * Writes a file and reads it back, again if it was spoilt or the board was reset meanwhile, which
 * leaves a part of it in flash. Rejects with a Failure (device).
 */
export const writeFile = async (
  board: EspruinoRepl,
  file: BoardFile,
  progress: Progress,
): Promise<void> => {
  for (let tries = 1; ; tries++) {
    await eraseFile(board, file.name);
    try {
      await writeChunks(board, file, progress);
      if (await isOnBoard(board, file)) return;
    } catch (error) {
      const isBroken = error instanceof Failure && error.cause instanceof BoardError;
      if (!isBroken || tries === TRIES) throw error;
      continue;
    }
    if (tries === TRIES) {
      throw new BoardFailure(
        "refused",
        `${file.name} was read back from flash incorrectly ${TRIES} times: a bad cable, or worn flash`,
      );
    }
  }
};

export const eraseFile = async (board: EspruinoRepl, name: string): Promise<void> => {
  await board.evaluate(`(${STORAGE}.erase(${JSON.stringify(name)}),1)`, SLOW_MS);
};

/**
 * Makes sure that files fit, compacting Storage if that helps. Rejects with a Failure (device) that
 * says how much is missing.
 */
export const makeRoom = async (
  board: EspruinoRepl,
  files: readonly BoardFile[],
  held: { readonly freeBytes: number; readonly trashBytes: number | null },
  mayCompact: boolean,
): Promise<void> => {
  const needed = files.reduce((sum, file) => sum + sizeOnBoard(file), 0);
  if (needed <= held.freeBytes) return;
  let free = held.freeBytes + (held.trashBytes ?? 0);
  if (mayCompact && (held.trashBytes === null || needed <= free)) {
    await board.evaluate(`(${STORAGE}.compact(),1)`, SLOW_MS);
    free = await answerOf(board, isNumber, `${STORAGE}.getFree()`);
  }
  if (needed <= free) return;
  throw new BoardFailure(
    "full",
    `not enough space: ${needed} bytes are needed, and Storage has ${free}: erase files there with require("Storage").erase("name"), or all with require("Storage").eraseAll()`,
  );
};
