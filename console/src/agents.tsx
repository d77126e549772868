/** All agents of the account, with their current presence: searched, sorted and counted. */
import type { Agent } from "@blindrelay/protocol/schema/rest";
import { matchesSelector, parseSelector, type Selector } from "@blindrelay/protocol/selector";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { labelsText } from "./agent.tsx";
import { CallMany } from "./call-many.tsx";
import {
  type Column,
  Field,
  FileInput,
  Heading,
  Input,
  Moment,
  Presence,
  Table,
  TroubleBox,
  useModel,
} from "./components.tsx";
import type { AgentColumn, AgentListing, Model } from "./model.ts";
import { Trouble } from "./rest.ts";
import { readKeyring } from "./secret-file.ts";

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
  const selector = selectorIn(search);
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const key = (agent: Agent): string =>
    sort === "online" ? (isOnline(agent) ? "0" : "1") : (agent[sort] ?? "");
  const sign = descending ? -1 : 1;
  return agents
    .filter(
      (agent) =>
        (online === "" || isOnline(agent) === (online === "online")) &&
        (selector === null
          ? folded(agent.name).includes(part) || folded(agent.agent_id).includes(part)
          : matchesSelector(selector, { ...agent, online: isOnline(agent) })),
    )
    .map((agent) => ({ agent, key: key(agent) }))
    .sort((a, b) => sign * compare(a.key, b.key) || compare(a.agent.name, b.agent.name))
    .map(({ agent }) => agent);
};

/** Null: it is none, but part of a name. */
const selectorIn = (text: string): Selector | null => {
  try {
    return parseSelector(text.trim());
  } catch {
    return null;
  }
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
      <>
        <a href={`#/agents/${agent.agent_id}`}>{agent.name}</a>{" "}
        <code class="id">{agent.agent_id}</code>
        {labelsText(agent) !== "" && <small class="id"> {labelsText(agent)}</small>}
      </>,
      <Presence online={isOnline(agent)} />,
      agent.firmware_version ?? <span class="faint">unknown</span>,
      agent.runtime ?? <span class="faint">unknown</span>,
      isOnline(agent) ? "now" : <Moment at={agent.last_seen} />,
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
  return (
    <>
      <Heading>Agents</Heading>
      <form class="filter" role="search">
        <Input
          id="search"
          label="Part of a name or identifier, or a selector"
          hint="Such as `label.site=hall-7,firmware<1.5.0`."
          type="search"
          defaultValue={listing.search}
          onInput={({ currentTarget }) => change({ search: currentTarget.value })}
        />
        <Field id="online" label="Presence">
          <select
            id="online"
            onChange={({ currentTarget }) =>
              change({ online: currentTarget.value as AgentListing["online"] })
            }
          >
            {["", "online", "offline"].map((value) => (
              <option value={value} selected={value === listing.online}>
                {value || "all"}
              </option>
            ))}
          </select>
        </Field>
        <KeyringField model={model} />
      </form>
      <p>
        <a class="button" href="#/add">
          Add a device
        </a>
      </p>
      <TroubleBox trouble={model.agentsTrouble} />
      <p role="status" class="faint">
        {countText(model, found.length, isFiltered)}
      </p>
      {(found.length > 0 || model.many !== null) && (
        <CallMany model={model} ids={found.map(({ agent_id }) => agent_id)} />
      )}
      {rows.length > 0 && <Table caption="Agents" columns={columns} rows={rows} />}
      {loaded && rows.length === 0 && (
        <p>
          {isFiltered ? (
            "No agent matches the filter."
          ) : (
            <>
              {"There are no agents yet. "}
              <a href="#/add">Add a device</a>
              {", or use "}
              <code>blindrelay agent add "Pump in hall 7"</code>, which also creates its end-to-end
              secret.
            </>
          )}
        </p>
      )}
      {found.length > most && (
        <button type="button" onClick={() => setMost(most + ROWS)}>
          Show more
        </button>
      )}
    </>
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
  const take = (text: string) => {
    try {
      model.addSecrets(readKeyring(text));
    } catch (error) {
      throw new Error(`This cannot be read as a keyring: ${(error as Error).message}.`);
    }
  };
  const paste = ({ currentTarget: input }: { currentTarget: HTMLInputElement }) => {
    if (input.value === "") return;
    setTrouble(null);
    try {
      take(input.value);
    } catch (error) {
      setTrouble(new Trouble((error as Error).message, "", ""));
    }
    input.value = "";
  };
  const { size } = model.secrets;
  return (
    <>
      <Field
        id="keyring"
        label="Keyring"
        hint={
          size === 0
            ? "A profile of `blindrelay`, or an entry of one: it opens its agents. It is not sent."
            : `${size} ${size === 1 ? "secret is" : "secrets are"} in this page's memory.`
        }
      >
        <FileInput id="keyring" hint="keyring-hint" take={take} setTrouble={setTrouble} />
      </Field>
      <Input
        id="keyring-text"
        label="… or the text of a QR code"
        type="password"
        onChange={paste}
      />
      <TroubleBox trouble={trouble} />
    </>
  );
};
