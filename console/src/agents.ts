/** All agents of the account, with their current presence. */
import { Fragment, h, type JSX } from "preact";
import { Field, Heading, Moment, Presence, Table, TroubleBox, useModel } from "./components.ts";
import type { AgentFilter, Model } from "./model.ts";

/** Typing is faster than requests for the list. */
const FILTER_DELAY_MS = 250;
let filterTimer: ReturnType<typeof setTimeout> | undefined;

export const Agents = ({ model }: { model: Model }): JSX.Element => {
  useModel(model);
  const { agents, filter, moreAgents, loaded } = model;
  const change = (part: Partial<AgentFilter>) => {
    clearTimeout(filterTimer);
    const next = { ...model.filter, ...part };
    filterTimer = setTimeout(() => void model.listAgents(next), FILTER_DELAY_MS);
  };
  const rows = agents.map((agent) => ({
    key: agent.agent_id,
    cells: [
      h(
        Fragment,
        null,
        h("a", { href: `#/agents/${agent.agent_id}` }, agent.name),
        " ",
        h("code", { class: "id" }, agent.agent_id),
      ),
      h(Presence, { online: agent.online }),
      agent.firmware_version ?? h("span", { class: "faint" }, "unknown"),
      agent.runtime ?? h("span", { class: "faint" }, "unknown"),
      h(Moment, { at: agent.last_seen }),
    ],
  }));
  const columns = ["Agent", "Presence", "Firmware", "Runtime", "Last seen"];
  const isFiltered = filter.name !== "" || filter.online !== "";
  return h(
    Fragment,
    null,
    h(Heading, null, "Agents"),
    h(
      "form",
      { class: "filter", role: "search", onSubmit: (event: Event) => event.preventDefault() },
      h(
        Field,
        { id: "name", label: "Name begins with" },
        h("input", {
          id: "name",
          type: "search",
          autocomplete: "off",
          defaultValue: filter.name,
          onInput: (event: Event) => change({ name: (event.target as HTMLInputElement).value }),
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
              change({ online: value as AgentFilter["online"] });
            },
          },
          [
            ["", "all"],
            ["true", "online"],
            ["false", "offline"],
          ].map(([value, text]) => h("option", { value, selected: value === filter.online }, text)),
        ),
      ),
    ),
    h(TroubleBox, { trouble: model.agentsTrouble }),
    h(
      "p",
      { role: "status", class: "faint" },
      loaded ? countText(agents.length, moreAgents !== null) : "Loading…",
    ),
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
    moreAgents !== null &&
      h("button", { type: "button", onClick: () => void model.listMoreAgents() }, "Show more"),
  );
};

const countText = (count: number, more: boolean): string =>
  `${count}${more ? " and more" : ""} ${count === 1 && !more ? "agent" : "agents"}`;
