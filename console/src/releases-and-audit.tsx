/** Lists that are fetched when they are opened: releases and the audit log. */
import type { AuditEntry, Release } from "@blindrelay/protocol/schema/rest";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading, Moment, type Row, Table, TroubleBox } from "./components.tsx";
import { type Model, troubleOfCall } from "./model.ts";
import { Manage } from "./release-actions.tsx";
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
  const load = async (before: Page<Item> | null) => {
    try {
      const { items, next_cursor } = await read(before?.next_cursor ?? null);
      setPage({ items: [...(before?.items ?? []), ...items], next_cursor });
      setTrouble(null);
    } catch (error) {
      setTrouble(troubleOfCall(error));
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

const Listing = <Item,>(props: {
  title: string;
  empty: ComponentChildren;
  columns: readonly string[];
  read: (cursor: string | null) => Promise<Page<Item>>;
  row: (item: Item, replace: (next: Item | null) => void) => Row;
}): JSX.Element => {
  const { title, empty, columns, read, row } = props;
  const { page, trouble, more, again, replace } = usePages(read);
  const rows = page?.items.map((item) => row(item, (next) => replace(item, next))) ?? [];
  return (
    <>
      <Heading>{title}</Heading>
      <TroubleBox trouble={trouble} />
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

const RELEASES = ["Release", "Status", "Rollout", "Devices", "Published"];
const MANAGED = [...RELEASES, "Change"];

export const Releases = ({ model }: { model: Model }): JSX.Element => (
  <Listing<Release>
    title="Releases"
    empty={
      <>
        {"There are no releases yet. Create one with "}
        <code>blindrelay release publish</code>.
      </>
    }
    columns={model.user.role === "admin" ? MANAGED : RELEASES}
    read={(cursor) => model.releases(cursor)}
    row={(release, changed) => {
      const { id, runtime, channel, version, status, rollout, published_at: at } = release;
      const { percent, paused, offered, running, left } = rollout;
      const text = `${percent} %${paused ? ", paused" : ""}`;
      const name = `${runtime} ${channel} ${version}`;
      return {
        key: id,
        cells: [
          <>
            <strong>{version}</strong> <code>{`${runtime} ${channel}`}</code>
          </>,
          <span class={`tag ${status}`}>{status}</span>,
          status === "draft" ? (
            <span class="faint">not begun</span>
          ) : (
            <span class="rollout">
              <meter min={0} max={100} value={percent} aria-label={`Rollout of ${name}`} />
              {text}
            </span>
          ),
          `${running} run it, ${offered} offered${left > 0 ? `, ${left} fell back` : ""}`,
          <Moment at={at} none="not yet" />,
          model.user.role === "admin" && status !== "yanked" && (
            <Manage model={model} release={release} changed={changed} />
          ),
        ],
      };
    }}
  />
);

const AUDIT = ["When", "Who", "What", "Subject", "Detail"];

export const Audit = ({ model }: { model: Model }): JSX.Element => (
  <Listing<AuditEntry>
    title="Audit"
    empty="No entries yet."
    columns={AUDIT}
    read={(cursor) => model.audit(cursor)}
    row={({ id, at, actor, action, subject, detail }) => ({
      key: String(id),
      cells: [
        <Moment at={at} />,
        actor?.username ?? <span class="faint">the relay's operator</span>,
        <code>{action}</code>,
        <code>{subject}</code>,
        Object.entries(detail)
          .map(([name, value]) => `${name} ${value}`)
          .join(", "),
      ],
    })}
  />
);
