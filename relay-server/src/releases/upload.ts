/**
 * Receives an artifact as a stream: parts go to the store, and memory never holds the whole. The
 * release refers to them only when size, hash and signature are verified.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { ControlContext } from "../control/context.ts";
import type { Db } from "../store/open.ts";
import { changeRelease } from "../store/releases.ts";
import type { ReleaseRow } from "../store/tables.ts";
import { addPart, beginUpload, dropUpload, PART_BYTES } from "../store/uploads.ts";
import type { ReleaseKeys } from "./keys.ts";

type UploadResult =
  | { readonly ok: true; readonly row: ReleaseRow }
  | { readonly ok: false; readonly problem: "empty" | "too_large" | "untrusted" | "not_a_draft" };

interface Received {
  readonly size: number;
  readonly sha256: string;
}

/**
 * Reads `body` to its end and attaches it to a draft; `note` then records that in the same
 * transaction. Rejects if the sender disconnects.
 */
export const receiveArtifact = async (
  context: Pick<ControlContext, "store" | "nowMs">,
  keys: ReleaseKeys,
  draft: ReleaseRow,
  signature: string,
  body: Readable,
  maxBytes: number,
  note: (tx: Db, row: ReleaseRow) => Promise<void>,
): Promise<UploadResult> => {
  const { store } = context;
  const uploadId = randomUUID();
  await store.write((tx) => beginUpload(tx, uploadId, context.nowMs()));
  let named = false;
  try {
    const received = await receiveParts(context, uploadId, body, maxBytes);
    if (received === null) return { ok: false, problem: "too_large" };
    if (received.size === 0) return { ok: false, problem: "empty" };
    const keyId = keys.signer({ ...draft, ...received }, signature);
    if (keyId === null) return { ok: false, problem: "untrusted" };
    const row = await store.write(async (tx) => {
      const change = {
        upload_id: uploadId,
        ...received,
        signature,
        key_id: keyId,
        // What was signed about other bytes.
        list: null,
        not_after: null,
        signatures: "[]",
      };
      const changed = await changeRelease(tx, draft.id, "draft", change);
      if (changed === undefined) return undefined;
      if (draft.upload_id !== null) await dropUpload(tx, draft.upload_id);
      await note(tx, changed);
      return changed;
    });
    if (row === undefined) return { ok: false, problem: "not_a_draft" };
    named = true;
    return { ok: true, row };
  } finally {
    if (!named) await store.write((tx) => dropUpload(tx, uploadId));
  }
};

/** Writes the parts; null if they would be more than `maxBytes`. */
const receiveParts = async (
  context: Pick<ControlContext, "store">,
  uploadId: string,
  body: Readable,
  maxBytes: number,
): Promise<Received | null> => {
  const hash = createHash("sha256");
  const part = Buffer.alloc(PART_BYTES);
  let size = 0;
  let filled = 0;
  let parts = 0;
  const flush = async (): Promise<void> => {
    const bytes = part.subarray(0, filled);
    const number = parts;
    await context.store.write((tx) => addPart(tx, uploadId, number, bytes));
    parts += 1;
    filled = 0;
  };
  // Left as it is where it is too long: a request that was destroyed has no address to be logged
  // with.
  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) return null;
    hash.update(chunk);
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.copy(part, filled, at);
      at += taken;
      filled += taken;
      if (filled === PART_BYTES) await flush();
    }
  }
  if (filled > 0) await flush();
  return { size, sha256: hash.digest("hex") };
};
