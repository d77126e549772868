/** What a person can do with an agent on the relay: rename it, rotate its token, delete it. */
import type { Agent } from "@blindrelay/protocol/schema/rest";
import { h, type JSX } from "preact";
import { useState } from "preact/hooks";
import { Field, TroubleBox } from "./components.ts";
import { type Model, troubleOfCall } from "./model.ts";
import type { Trouble } from "./rest.ts";

export const ManageAgent = ({ model, row }: { model: Model; row: Agent }): JSX.Element => {
  const [name, setName] = useState(row.name);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [token, setToken] = useState<string | null>(null);
  const { agent_id: agentId } = row;

  const act = async (what: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setTrouble(null);
    try {
      await what();
    } catch (error) {
      setTrouble(troubleOfCall(error));
    }
    setBusy(false);
  };
  const rename = (event: SubmitEvent) => {
    event.preventDefault();
    void act(() => model.renameAgent(agentId, name.trim()));
  };
  const rotate = () => {
    if (!confirm(`Rotate the relay token of ${row.name}? It is offline until it has the new one.`))
      return;
    void act(async () => setToken(await model.rotateAgent(agentId)));
  };
  const remove = () => {
    if (!confirm(`Delete ${row.name} (${agentId}) from the relay? It cannot be called any more.`))
      return;
    void act(async () => {
      await model.deleteAgent(agentId);
      location.hash = "#/agents";
    });
  };

  return h(
    "details",
    { class: "manage" },
    h("summary", null, "Manage", h("span", { class: "unseen" }, ` ${row.name}`)),
    h(TroubleBox, { trouble }),
    h(
      "form",
      { onSubmit: rename },
      h(
        Field,
        { id: "rename", label: "Name" },
        h("input", {
          id: "rename",
          required: true,
          maxLength: 128,
          autocomplete: "off",
          value: name,
          onInput: (event: Event) => setName((event.target as HTMLInputElement).value),
        }),
      ),
      h("button", { type: "submit", disabled: busy }, "Rename"),
    ),
    h(
      "p",
      null,
      h("button", { type: "button", disabled: busy, onClick: rotate }, "Rotate the relay token"),
      " ",
      h("button", { type: "button", disabled: busy, onClick: remove }, "Delete the agent"),
    ),
    token !== null &&
      h(
        "div",
        { role: "status" },
        h("p", null, "The new relay token. It is shown only here: put it on the device."),
        h("pre", { tabIndex: 0, role: "region", "aria-label": "Relay token" }, token),
      ),
  );
};
