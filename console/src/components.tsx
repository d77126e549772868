/** Components that several views share. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { type Model, troubleOfCall } from "./model.ts";
import { Trouble } from "./rest.ts";
import { textOf } from "./secret-file.ts";

/**
 * Draws the component again after every change of the model. What listens, and what moves the
 * focus, are layout effects: others run after the next frame, which a hidden or busy page may
 * delay, and what happens until then would be missed, or typed into the wrong field.
 */
export const useModel = (model: Model): void => {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => model.watch(() => draw(undefined)), [model]);
};

/**
 * What a button or a form does, one at a time: `act` runs it, and `trouble` is the error that ended
 * the last one.
 */
export const useAction = (notice: Trouble | null = null) => {
  const [trouble, setTrouble] = useState(notice);
  const [busy, setBusy] = useState(false);
  const act = async (what: () => Promise<unknown>, failed?: () => void): Promise<void> => {
    setBusy(true);
    setTrouble(null);
    try {
      await what();
    } catch (error) {
      setTrouble(troubleOfCall(error));
      failed?.();
    }
    setBusy(false);
  };
  return { busy, trouble, setTrouble, act };
};

/** Asks before the page is closed or reloaded, while something would be lost. */
export const useWarning = (isOn: boolean): void => {
  useEffect(() => {
    if (!isOn) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isOn]);
};

/** A view's heading. It takes the focus when the view opens, so that screen readers start there. */
export const Heading = ({ children }: { children?: ComponentChildren }): JSX.Element => {
  const ref = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => ref.current?.focus(), []);
  useEffect(() => {
    document.title = `${ref.current?.textContent} · blindrelay console`;
  });
  return (
    <h1 ref={ref} tabIndex={-1}>
      {children}
    </h1>
  );
};

/** Text in which `…` marks commands to type. */
const coded = (text: string): ComponentChildren =>
  text.split("`").map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part));

/** An error and its fix. Screen readers announce it when it appears. */
export const TroubleBox = ({ trouble }: { trouble: Trouble | null }): JSX.Element => (
  <div role="alert">{trouble && <TroubleText trouble={trouble} />}</div>
);

export const TroubleText = (props: { trouble: Trouble; of?: string }): JSX.Element => {
  const { trouble, of } = props;
  const { message, fix } = trouble;
  return (
    <div class="trouble">
      <p>
        <strong>{of === undefined ? message : `${of}: ${message}`}</strong>
      </p>
      {fix !== "" && <p>{coded(fix)}</p>}
    </div>
  );
};

export const Presence = ({ online }: { online: boolean }): JSX.Element => (
  <span class={online ? "presence online" : "presence"}>{online ? "online" : "offline"}</span>
);

export type Fact = readonly [name: string, value: ComponentChildren];

export const FactList = ({ facts }: { facts: readonly Fact[] }): JSX.Element => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

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
  if (at === null) return <span class="faint">{none}</span>;
  const text = new Date(at).toLocaleString(undefined, MOMENT);
  return <time dateTime={at}>{text}</time>;
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
    const attributes = { role: "columnheader", scope: "col" } as const;
    if (typeof column === "string") return <th {...attributes}>{column}</th>;
    const { title, sorted, sort } = column;
    return (
      <th {...attributes} aria-sort={sorted ?? "none"}>
        <button type="button" class="sort" onClick={sort}>
          {title}
        </button>
      </th>
    );
  });
  const body = rows.map(({ key, cells }) => (
    <tr key={key} role="row">
      {cells.map((cell, index) => {
        const column = { "data-column": titles[index] };
        if (index > 0)
          return (
            <td role="cell" {...column}>
              {cell}
            </td>
          );
        return (
          <th role="rowheader" scope="row" {...column}>
            {cell}
          </th>
        );
      })}
    </tr>
  ));
  return (
    <table role="table">
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">{heads}</tr>
      </thead>
      <tbody role="rowgroup">{body}</tbody>
    </table>
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
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <p id={`${id}-hint`} class="hint">
          {coded(hint)}
        </p>
      )}
    </div>
  );
};

/** A line to fill in; `set` gets its text, and all other attributes are the input's. */
export const Input = (
  props: JSX.IntrinsicElements["input"] & {
    id: string;
    label: string;
    hint?: string;
    set?: (text: string) => void;
  },
): JSX.Element => {
  const { id, label, hint, set, ...attributes } = props;
  return (
    <Field id={id} label={label} hint={hint}>
      <input
        id={id}
        autocomplete="off"
        spellcheck={false}
        aria-describedby={hint && `${id}-hint`}
        onInput={({ currentTarget }) => set?.(currentTarget.value)}
        {...attributes}
      />
    </Field>
  );
};

/** Passes on the text of a file that the user chooses, or the reason why it was not taken. */
export const FileInput = (props: {
  id: string;
  hint?: string;
  /** What the file should be. */
  what?: string;
  take: (text: string, name: string) => void;
  setTrouble: (trouble: Trouble | null) => void;
}): JSX.Element => {
  const { id, hint, what = "a keyring", take, setTrouble } = props;
  const load = async ({ currentTarget: input }: { currentTarget: HTMLInputElement }) => {
    const file = input.files?.[0];
    if (file === undefined) return;
    setTrouble(null);
    try {
      take(await textOf(file, what), file.name);
    } catch (error) {
      setTrouble(new Trouble((error as Error).message, "", ""));
    }
    input.value = "";
  };
  return <input id={id} type="file" aria-describedby={hint} onChange={load} />;
};
