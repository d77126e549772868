/** All agents of the account, with their current presence: searched, sorted and counted. */
import type { Agent } from "@blindrelay/protocol/schema/rest";
import { Fragment, h, type JSX } from "preact";
import { useState } from "preact/hooks";
import {
  type Column,
  Field,
  Heading,
  Moment,
  Presence,
  Table,
  TroubleBox,
  useModel,
} from "./components.ts";
import type { AgentColumn, AgentListing, Model } from "./model.ts";
import { Trouble } from "./rest.ts";
import { keyringIn, textOf } from "./secret-file.ts";

/** Rows that are drawn at first, and more at each press: a page of thousands is slow. */
const ROWS = 100;

const COLUMNS: readonly (readonly [column: AgentColumn, title: string])[] = [
  ["name", "Agent"],
  ["online", "Presence"],
  ["firmware_version", "Firmware"],
  ["runtime", "Runtime"],
  ["last_seen", "Last seen"],
];

/** Those that the listing asks for, in its order. `isOnline`: now. */
export const listed = (
  agents: readonly Agent[],
  { search, online, sort, descending }: AgentListing,
  isOnline: (agent: Agent) => boolean,
): Agent[] => {
  const part = folded(search.trim());
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const key = (agent: Agent): string =>
    sort === "online" ? (isOnline(agent) ? "0" : "1") : (agent[sort] ?? "");
  const sign = descending ? -1 : 1;
  return agents
    .filter(
      (agent) =>
        (online === "" || isOnline(agent) === (online === "online")) &&
        (folded(agent.name).includes(part) || folded(agent.agent_id).includes(part)),
    )
    .map((agent) => ({ agent, key: key(agent) }))
    .sort((a, b) => sign * compare(a.key, b.key) || compare(a.agent.name, b.agent.name))
    .map(({ agent }) => agent);
};

/** "dev" finds "Dév": people type without accents. */
const folded = (text: string): string =>
  text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

export const Agents = ({ model }: { model: Model }): JSX.Element => {
  useModel(model);
  const [most, setMost] = useState(ROWS);
  const { agents, listing, loaded } = model;
  const isOnline = (agent: Agent) => model.isOnline(agent);
  const found = listed(agents, listing, isOnline);
  const rows = found.slice(0, most).map((agent) => ({
    key: agent.agent_id,
    cells: [
      h(
        Fragment,
        null,
        h("a", { href: `#/agents/${agent.agent_id}` }, agent.name),
        " ",
        h("code", { class: "id" }, agent.agent_id),
      ),
      h(Presence, { online: isOnline(agent) }),
      agent.firmware_version ?? h("span", { class: "faint" }, "unknown"),
      agent.runtime ?? h("span", { class: "faint" }, "unknown"),
      isOnline(agent) ? "now" : h(Moment, { at: agent.last_seen }),
    ],
  }));
  const change = (part: Partial<AgentListing>) => {
    setMost(ROWS);
    model.list(part);
  };
  const columns = COLUMNS.map<Column>(([column, title]) => ({
    title,
    sorted: listing.sort !== column ? null : listing.descending ? "descending" : "ascending",
    sort: () =>
      change({ sort: column, descending: listing.sort === column && !listing.descending }),
  }));
  const isFiltered = listing.search !== "" || listing.online !== "";
  return h(
    Fragment,
    null,
    h(Heading, null, "Agents"),
    h(
      "form",
      { class: "filter", role: "search", onSubmit: (event: Event) => event.preventDefault() },
      h(
        Field,
        { id: "search", label: "Part of a name or identifier" },
        h("input", {
          id: "search",
          type: "search",
          autocomplete: "off",
          spellcheck: false,
          defaultValue: listing.search,
          onInput: (event: Event) => change({ search: (event.target as HTMLInputElement).value }),
        }),
      ),
      h(
        Field,
        { id: "online", label: "Presence" },
        h(
          "select",
          {
            id: "online",
            onChange: (event: Event) => {
              const { value } = event.target as HTMLSelectElement;
              change({ online: value as AgentListing["online"] });
            },
          },
          [
            ["", "all"],
            ["online", "online"],
            ["offline", "offline"],
          ].map(([value, text]) =>
            h("option", { value, selected: value === listing.online }, text),
          ),
        ),
      ),
      h(KeyringField, { model }),
    ),
    h(TroubleBox, { trouble: model.agentsTrouble }),
    h("p", { role: "status", class: "faint" }, countText(model, found.length, isFiltered)),
    rows.length > 0 && h(Table, { caption: "Agents", columns, rows }),
    loaded &&
      rows.length === 0 &&
      h(
        "p",
        null,
        isFiltered
          ? "No agent matches the filter."
          : h(
              Fragment,
              null,
              "There are no agents yet. Add one with ",
              h("code", null, 'blindrelay agent add "Pump in hall 7"'),
              ", which also creates its end-to-end secret.",
            ),
      ),
    found.length > most &&
      h("button", { type: "button", onClick: () => setMost(most + ROWS) }, "Show more"),
  );
};

const countText = (model: Model, found: number, isFiltered: boolean): string => {
  const { agents, isCut, loaded } = model;
  if (!loaded) return agents.length === 0 ? "Loading…" : `Loading… ${agents.length} so far`;
  const online = agents.filter((agent) => model.isOnline(agent)).length;
  const of = isFiltered ? `${found} of ` : "";
  const all = `${agents.length}${isCut ? " and more" : ""}`;
  return `${of}${all} ${agents.length === 1 ? "agent" : "agents"}, ${online} online`;
};

/** One keyring opens all its agents, each when it is looked at. */
const KeyringField = ({ model }: { model: Model }): JSX.Element => {
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const load = async (event: Event) => {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    if (file === undefined) return;
    try {
      const found = keyringIn(await textOf(file));
      if (found.size === 0) {
        throw new Error(
          "There is no keyring in the file. One that is encrypted with a passphrase cannot be read here.",
        );
      }
      setTrouble(null);
      model.addSecrets(found);
    } catch (error) {
      setTrouble(new Trouble((error as Error).message, "", ""));
    }
    input.value = "";
  };
  const { size } = model.secrets;
  return h(
    Fragment,
    null,
    h(
      Field,
      {
        id: "keyring",
        label: "Keyring",
        hint:
          size === 0
            ? "A profile of `blindrelay`: it opens all its agents. It is not sent."
            : `${size} ${size === 1 ? "secret is" : "secrets are"} in this page's memory.`,
      },
      h("input", {
        id: "keyring",
        type: "file",
        "aria-describedby": "keyring-hint",
        onChange: load,
      }),
    ),
    h(TroubleBox, { trouble }),
  );
};
