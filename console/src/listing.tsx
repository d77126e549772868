/** A list that is fetched when it is opened, page by page. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Heading, type Row, Table, TroubleBox } from "./components.tsx";
import { troubleOfCall } from "./model.ts";
import type { Trouble } from "./rest.ts";

interface Page<Item> {
  readonly items: Item[];
  readonly next_cursor: string | null;
}

/**
 * The concatenated pages, an error, and functions: one loads the next page or reloads all, and one
 * replaces an item (null removes it).
 */
const usePages = <Item,>(read: (cursor: string | null) => Promise<Page<Item>>) => {
  const [page, setPage] = useState<Page<Item> | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  /** The number of the newest reading; answers to older ones are dropped. */
  const reading = useRef(0);
  const load = async (before: Page<Item> | null) => {
    const turn = ++reading.current;
    try {
      const { items, next_cursor } = await read(before?.next_cursor ?? null);
      if (turn !== reading.current) return;
      // After what is listed now: an item may have been changed or removed meanwhile.
      setPage((now) => ({
        items: before === null ? items : [...(now?.items ?? []), ...items],
        next_cursor,
      }));
      setTrouble(null);
    } catch (error) {
      if (turn === reading.current) setTrouble(troubleOfCall(error));
    }
  };
  useEffect(() => void load(null), []);
  const replace = (old: Item, next: Item | null) => {
    setPage((now) => {
      if (now === null) return null;
      const items = now.items.flatMap((item) => (item !== old ? item : next === null ? [] : next));
      return { ...now, items };
    });
  };
  return { page, trouble, more: () => void load(page), again: () => void load(null), replace };
};

export const Listing = <Item,>(props: {
  title: string;
  empty: ComponentChildren;
  columns: readonly string[];
  read: (cursor: string | null) => Promise<Page<Item>>;
  row: (item: Item, replace: (next: Item | null) => void) => Row;
  /** Shown above the list; `again` reads it anew. */
  above?: (again: () => void) => ComponentChildren;
}): JSX.Element => {
  const { title, empty, columns, read, row, above } = props;
  const { page, trouble, more, again, replace } = usePages(read);
  const rows = page?.items.map((item) => row(item, (next) => replace(item, next))) ?? [];
  return (
    <>
      <Heading>{title}</Heading>
      <TroubleBox trouble={trouble} />
      {above?.(again)}
      <p>
        <button type="button" onClick={again}>
          Refresh
        </button>
      </p>
      {page === null && trouble === null && <p role="status">Loading…</p>}
      {page !== null && rows.length === 0 && <p>{empty}</p>}
      {rows.length > 0 && <Table caption={title} columns={columns} rows={rows} />}
      {page !== null && page.next_cursor !== null && (
        <button type="button" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
};
