/** Lists that are fetched when they are opened: releases and the audit log. */
import type { AuditEntry, Release } from "@blindrelay/protocol/schema/rest";
import { type ComponentChildren, Fragment, h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading, Moment, type Row, Table, TroubleBox } from "./components.ts";
import { type Model, troubleOfCall } from "./model.ts";
import { Manage } from "./release-actions.ts";
import type { Trouble } from "./rest.ts";

interface Page<Item> {
  readonly items: Item[];
  readonly next_cursor: string | null;
}

/**
 * The concatenated pages, an error, and functions: one loads the next page or reloads all, and one
 * replaces an item (null removes it).
 */
const usePages = <Item>(read: (cursor: string | null) => Promise<Page<Item>>) => {
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

const Listing = <Item>(props: {
  title: string;
  empty: ComponentChildren;
  columns: readonly string[];
  read: (cursor: string | null) => Promise<Page<Item>>;
  row: (item: Item, replace: (next: Item | null) => void) => Row;
}): JSX.Element => {
  const { title, empty, columns, read, row } = props;
  const { page, trouble, more, again, replace } = usePages(read);
  const rows = page?.items.map((item) => row(item, (next) => replace(item, next))) ?? [];
  return h(
    Fragment,
    null,
    h(Heading, null, title),
    h(TroubleBox, { trouble }),
    h("p", null, h("button", { type: "button", onClick: again }, "Refresh")),
    page === null && trouble === null && h("p", { role: "status" }, "Loading…"),
    page !== null && rows.length === 0 && h("p", null, empty),
    rows.length > 0 && h(Table, { caption: title, columns, rows }),
    page !== null &&
      page.next_cursor !== null &&
      h("button", { type: "button", onClick: more }, "Show more"),
  );
};

const RELEASES = ["Release", "Status", "Rollout", "Devices", "Published"];
const MANAGED = [...RELEASES, "Change"];

export const Releases = ({ model }: { model: Model }): JSX.Element =>
  h(Listing<Release>, {
    title: "Releases",
    empty: h(
      Fragment,
      null,
      "There are no releases yet. Create one with ",
      h("code", null, "blindrelay release publish"),
      ".",
    ),
    columns: model.user.role === "admin" ? MANAGED : RELEASES,
    read: (cursor) => model.releases(cursor),
    row: (release, changed) => {
      const { id, runtime, channel, version, status, rollout, published_at: at } = release;
      const { percent, paused, offered, running, left } = rollout;
      const text = `${percent} %${paused ? ", paused" : ""}`;
      const name = `${runtime} ${channel} ${version}`;
      return {
        key: id,
        cells: [
          h(
            Fragment,
            null,
            h("strong", null, version),
            " ",
            h("code", null, `${runtime} ${channel}`),
          ),
          h("span", { class: `tag ${status}` }, status),
          status === "draft"
            ? h("span", { class: "faint" }, "not begun")
            : h(
                "span",
                { class: "rollout" },
                h("meter", {
                  min: 0,
                  max: 100,
                  value: percent,
                  "aria-label": `Rollout of ${name}`,
                }),
                text,
              ),
          `${running} run it, ${offered} offered${left > 0 ? `, ${left} fell back` : ""}`,
          h(Moment, { at, none: "not yet" }),
          model.user.role === "admin" &&
            status !== "yanked" &&
            h(Manage, { model, release, changed }),
        ],
      };
    },
  });

const AUDIT = ["When", "Who", "What", "Subject", "Detail"];

export const Audit = ({ model }: { model: Model }): JSX.Element =>
  h(Listing<AuditEntry>, {
    title: "Audit",
    empty: "No entries yet.",
    columns: AUDIT,
    read: (cursor) => model.audit(cursor),
    row: ({ id, at, actor, action, subject, detail }) => ({
      key: String(id),
      cells: [
        h(Moment, { at }),
        actor?.username ?? h("span", { class: "faint" }, "the relay's operator"),
        h("code", null, action),
        h("code", { title: subject }, model.usernames.get(subject) ?? subject),
        Object.entries(detail)
          .map(([name, value]) => `${name} ${value}`)
          .join(", "),
      ],
    }),
  });
