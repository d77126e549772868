/** What a person can do with an agent on the relay: rename it, rotate its token, delete it. */
import type { Agent } from "@blindrelay/protocol/schema/rest";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Input, TroubleBox, useAction } from "./components.tsx";
import type { Model } from "./model.ts";

export const ManageAgent = ({ model, row }: { model: Model; row: Agent }): JSX.Element => {
  const [name, setName] = useState(row.name);
  const { busy, trouble, act } = useAction();
  const [token, setToken] = useState<string | null>(null);
  const { agent_id: agentId } = row;

  const rename = () => act(() => model.renameAgent(agentId, name.trim()));
  const rotate = () => {
    if (!confirm(`Rotate the relay token of ${row.name}? It is offline until it has the new one.`))
      return;
    void act(async () => setToken(await model.rotateAgent(agentId)));
  };
  const remove = () => {
    if (!confirm(`Delete ${row.name} (${agentId}) from the relay? It cannot be called any more.`))
      return;
    const here = location.hash;
    void act(async () => {
      await model.deleteAgent(agentId);
      // Whoever has gone on meanwhile stays there.
      if (location.hash === here) location.hash = "#/agents";
    });
  };

  return (
    <details class="manage">
      <summary>
        Manage
        <span class="unseen">{` ${row.name}`}</span>
      </summary>
      <TroubleBox trouble={trouble} />
      <form onSubmit={rename}>
        <Input id="rename" label="Name" required maxLength={128} value={name} set={setName} />
        <button type="submit" disabled={busy}>
          Rename
        </button>
      </form>
      <p>
        <button type="button" disabled={busy} onClick={rotate}>
          Rotate the relay token
        </button>{" "}
        <button type="button" disabled={busy} onClick={remove}>
          Delete the agent
        </button>
      </p>
      {token !== null && (
        <div role="status">
          <p>The new relay token. It is shown only here: put it on the device.</p>
          <pre tabIndex={0} role="region" aria-label="Relay token">
            {token}
          </pre>
        </div>
      )}
    </details>
  );
};
