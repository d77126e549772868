/** Changes of the store after which links end. */
import { type Notice, postNotices } from "../store/notices.ts";
import type { Db } from "../store/open.ts";
import type { ControlContext } from "./context.ts";

/** Has every relay on the store act on something, inside the transaction. */
export type Post = (kind: Notice["kind"], ...subjects: readonly string[]) => Promise<void>;

/**
 * Runs `work` in a transaction, and acts on what it has posted at once after the commit. `userId`:
 * whose change it is.
 */
export const changeStore = async <T>(
  { store, nowMs, links }: Pick<ControlContext, "store" | "nowMs"> & Partial<ControlContext>,
  userId: string,
  work: (tx: Db, nowMs: number, post: Post) => Promise<T>,
): Promise<T> => {
  const atMs = nowMs();
  let posted: Notice[] = [];
  const result = await store.write((tx) => {
    posted = []; // of an attempt that was undone
    return work(tx, atMs, async (kind, ...subjects) => {
      posted.push(...(await postNotices(tx, kind, subjects, atMs, userId)));
    });
  });
  links?.act(posted);
  return result;
};
