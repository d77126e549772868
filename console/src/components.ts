/** Components that several views share. */
import { type ComponentChildren, h, type JSX } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import type { Model } from "./model.ts";
import type { Trouble } from "./rest.ts";

/**
 * Draws the component again after every change of the model. What listens, and what moves the
 * focus, are layout effects: others run after the next frame, which a hidden or busy page may
 * delay, and what happens until then would be missed, or typed into the wrong field.
 */
export const useModel = (model: Model): void => {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => model.watch(() => draw(undefined)), [model]);
};

/** A view's heading. It takes the focus when the view opens, so that screen readers start there. */
export const Heading = ({ children }: { children?: ComponentChildren }): JSX.Element => {
  const ref = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => ref.current?.focus(), []);
  useEffect(() => {
    document.title = `${ref.current?.textContent} · blindrelay console`;
  });
  return h("h1", { ref, tabIndex: -1 }, children);
};

/** Text in which `…` marks commands to type. */
const coded = (text: string): ComponentChildren =>
  text.split("`").map((part, index) => (index % 2 === 1 ? h("code", null, part) : part));

/** An error and its fix. Screen readers announce it when it appears. */
export const TroubleBox = ({ trouble }: { trouble: Trouble | null }): JSX.Element =>
  h("div", { role: "alert" }, trouble && h(TroubleText, { trouble }));

export const TroubleText = (props: { trouble: Trouble; of?: string }): JSX.Element => {
  const { trouble, of } = props;
  const { message, fix } = trouble;
  return h(
    "div",
    { class: "trouble" },
    h("p", null, h("strong", null, of === undefined ? message : `${of}: ${message}`)),
    fix !== "" && h("p", null, coded(fix)),
  );
};

export const Presence = ({ online }: { online: boolean }): JSX.Element =>
  h("span", { class: online ? "presence online" : "presence" }, online ? "online" : "offline");

const MOMENT: Intl.DateTimeFormatOptions = {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
};

/** A time in the reader's own time zone and format, with the zone's name. */
export const Moment = ({
  at,
  none = "never",
}: {
  at: string | null;
  none?: string;
}): JSX.Element => {
  if (at === null) return h("span", { class: "faint" }, none);
  const text = new Date(at).toLocaleString(undefined, MOMENT);
  return h("time", { dateTime: at }, text);
};

export const clock = (at: Date): string => at.toLocaleTimeString(undefined, { hour12: false });

/** A column's title, and how its head sorts the table, if it does. */
export type Column =
  | string
  | {
      readonly title: string;
      readonly sorted: "ascending" | "descending" | null;
      readonly sort: () => void;
    };

export interface Row {
  readonly key: string;
  readonly cells: readonly ComponentChildren[];
}

/**
 * A table that narrow screens show as cards. Its roles are explicit, because browsers drop them
 * when CSS changes a table's display.
 */
export const Table = (props: {
  caption: string;
  columns: readonly Column[];
  rows: readonly Row[];
}): JSX.Element => {
  const { caption, columns, rows } = props;
  const titles = columns.map((column) => (typeof column === "string" ? column : column.title));
  const heads = columns.map((column) => {
    const attributes = { role: "columnheader", scope: "col" };
    if (typeof column === "string") return h("th", attributes, column);
    const { title, sorted, sort } = column;
    return h(
      "th",
      { ...attributes, "aria-sort": sorted ?? "none" },
      h("button", { type: "button", class: "sort", onClick: sort }, title),
    );
  });
  const body = rows.map(({ key, cells }) =>
    h(
      "tr",
      { key, role: "row" },
      cells.map((cell, index) => {
        const role = index === 0 ? "rowheader" : "cell";
        const attributes = { role, "data-column": titles[index] };
        return index === 0
          ? h("th", { ...attributes, scope: "row" }, cell)
          : h("td", attributes, cell);
      }),
    ),
  );
  return h(
    "table",
    { role: "table" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, body),
  );
};

/** A label above its field, and a hint below it. */
export const Field = (props: {
  id: string;
  label: string;
  hint?: string;
  children?: ComponentChildren;
}): JSX.Element => {
  const { id, label, hint, children } = props;
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    children,
    hint !== undefined && h("p", { id: `${id}-hint`, class: "hint" }, coded(hint)),
  );
};
