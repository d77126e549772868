/** What a download holds in memory while nobody reads it. */
import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore, type Store } from "../store/open.ts";
import { addPart, beginUpload, PART_BYTES } from "../store/uploads.ts";
import { artifactStream } from "./artifact.ts";

const ID = "upload";
const BYTES = randomBytes(2 * PART_BYTES + 777);
const WHOLE = { from: 0, to: BYTES.length - 1 };

const folder = mkdtempSync(join(tmpdir(), "blindrelay-artifact-"));
let store: Store;
beforeAll(async () => {
  store = await openStore({ engine: "sqlite", path: join(folder, "relay.sqlite") }, true);
  await beginUpload(store.db, ID, 0);
  for (let part = 0; part * PART_BYTES < BYTES.length; part++) {
    const at = part * PART_BYTES;
    await addPart(store.db, ID, part, BYTES.subarray(at, at + PART_BYTES));
  }
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true });
});

/** A response that takes nothing more once it has this many bytes. */
const download = (socket: object | null, room: number, wait: () => Promise<void> = turn) => {
  const response = Object.assign(new EventEmitter(), { socket }) as unknown as ServerResponse;
  const got: Buffer[] = [];
  const size = () => Buffer.concat(got).length;
  const reader = new Writable({
    highWaterMark: 65_536,
    write: (bytes: Buffer, _encoding, done) => {
      got.push(bytes);
      if (size() < room) done();
    },
  });
  const stream = artifactStream(store.db, ID, WHOLE, response, wait);
  stream.pipe(reader);
  return { stream, got, reader, response };
};

const settle = async (): Promise<void> => {
  for (let n = 0; n < 200; n++) await turn();
};

test("is one piece", async () => {
  const { stream, got, reader } = download({}, 1);
  await settle();
  expect(got.map(({ length }) => length)).toEqual([65_536]);
  expect([reader.writableLength, stream.readableLength]).toEqual([65_536, 0]);
  // No view of a whole part.
  expect(got[0]?.buffer.byteLength).toBe(65_536);
});

test("is nothing before its turn on the connection has come", async () => {
  const { got, response } = download(null, Number.POSITIVE_INFINITY);
  await settle();
  expect(got).toEqual([]);
  response.emit("socket");
  await settle();
  expect(Buffer.concat(got).equals(BYTES)).toBe(true);
});

test("leaves others their turns between two pieces", async () => {
  const waiting: (() => void)[] = [];
  const { got } = download(
    {},
    Number.POSITIVE_INFINITY,
    () => new Promise((resolve) => waiting.push(resolve)),
  );
  for (let pieces = 0; pieces < 3; pieces++) {
    await settle();
    expect([got.length, waiting.length]).toEqual([pieces, 1]);
    waiting.pop()?.();
  }
});
