/** The events of the agents, newest first. */
import { Fragment, h, type JSX } from "preact";
import { clock, Heading, useModel } from "./components.ts";
import type { Heard, Model } from "./model.ts";

/** For all agents, or one. */
export const HeardList = ({ model, agentId }: { model: Model; agentId?: string }): JSX.Element => {
  const heard = model.heard.filter((one) => agentId === undefined || one.agentId === agentId);
  return h(
    Fragment,
    null,
    heard.length === 0 && h("p", { class: "faint" }, "No events yet; new ones appear here."),
    h(
      "div",
      { role: "log", "aria-label": "Events, newest first" },
      heard.length > 0 &&
        h(
          "ol",
          { class: "heard" },
          heard.map((one) => h(HeardItem, { key: one.id, one, named: agentId === undefined })),
        ),
    ),
    heard.length > 0 && h("button", { type: "button", onClick: () => model.clearHeard() }, "Clear"),
  );
};

const HeardItem = ({ one, named }: { one: Heard; named: boolean }): JSX.Element =>
  h(
    "li",
    { class: one.kind },
    h("time", { dateTime: one.at.toISOString() }, clock(one.at)),
    " ",
    named && h("a", { href: `#/agents/${one.agentId}` }, one.agentId),
    named && " ",
    h("strong", null, one.what),
    one.data !== undefined && h("code", null, " ", JSON.stringify(one.data)),
  );

export const Events = ({ model }: { model: Model }): JSX.Element => {
  useModel(model);
  const open = model.opened.size;
  return h(
    Fragment,
    null,
    h(Heading, null, "Events"),
    h(
      "p",
      null,
      "Agents that go online or offline, and events of the opened ones. ",
      open === 0
        ? "No agent is open: open one with its secret to read its events."
        : `Open: ${[...model.opened.keys()].join(", ")}.`,
    ),
    h(HeardList, { model }),
  );
};
