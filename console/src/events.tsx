/** The events of the agents, newest first. */
import type { JSX } from "preact";
import { clock, Heading, useModel } from "./components.tsx";
import type { Heard, Model } from "./model.ts";

/** For all agents, or one. */
export const HeardList = ({ model, agentId }: { model: Model; agentId?: string }): JSX.Element => {
  const heard = model.heard.filter((one) => agentId === undefined || one.agentId === agentId);
  return (
    <>
      {heard.length === 0 && <p class="faint">No events yet; new ones appear here.</p>}
      <div role="log" aria-label="Events, newest first">
        {heard.length > 0 && (
          <ol class="heard">
            {heard.map((one) => (
              <HeardItem key={one.id} one={one} named={agentId === undefined} />
            ))}
          </ol>
        )}
      </div>
      {heard.length > 0 && (
        <button type="button" onClick={() => model.clearHeard()}>
          Clear
        </button>
      )}
    </>
  );
};

const HeardItem = ({ one, named }: { one: Heard; named: boolean }): JSX.Element => (
  <li class={one.kind}>
    <time dateTime={one.at.toISOString()}>{clock(one.at)}</time>{" "}
    {named && <a href={`#/agents/${one.agentId}`}>{one.agentId}</a>}
    {named && " "}
    <strong>{one.what}</strong>
    {one.data !== undefined && <code> {JSON.stringify(one.data)}</code>}
  </li>
);

export const Events = ({ model }: { model: Model }): JSX.Element => {
  useModel(model);
  const open = model.opened.size;
  return (
    <>
      <Heading>Events</Heading>
      <p>
        {"Agents that go online or offline, and events of the opened ones. "}
        {open === 0
          ? "No agent is open: open one with its secret to read its events."
          : `Open: ${[...model.opened.keys()].join(", ")}.`}
      </p>
      <HeardList model={model} />
    </>
  );
};
