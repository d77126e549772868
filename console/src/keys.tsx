/** Access keys: those of the account, a form that makes one, and their end. */
import type { AccessKey } from "@blindrelay/protocol/schema/rest";
import { KEY_SCOPES, type KeyScope } from "@blindrelay/protocol/selector";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Input, Moment, TroubleBox, useAction } from "./components.tsx";
import { Listing } from "./listing.tsx";
import type { Model } from "./model.ts";

const COLUMNS = ["Key", "Scopes", "Agents", "Ends", "Last used", "Change"];
const DAY_MS = 86_400_000;
const MEANINGS: { readonly [scope in KeyScope]: string } = {
  read: "see agents and releases",
  call: "call agents, with their secrets",
  agents: "create, change and delete agents",
  releases: "make and publish releases, as far as you may",
};

export const Keys = ({ model }: { model: Model }): JSX.Element => (
  <Listing<AccessKey>
    title="Access keys"
    empty="No access keys yet."
    columns={COLUMNS}
    read={(cursor) => model.keys(cursor)}
    above={(again) => <NewKey model={model} made={again} />}
    row={(key, changed) => ({
      key: key.id,
      cells: [
        <strong>{key.name}</strong>,
        key.scopes.join(", "),
        key.where === null ? <span class="faint">all</span> : <code>{key.where}</code>,
        <Moment at={key.expires_at} />,
        <Moment at={key.last_used_at} />,
        <RemoveKey model={model} accessKey={key} removed={() => changed(null)} />,
      ],
    })}
  />
);

const RemoveKey = (props: {
  model: Model;
  accessKey: AccessKey;
  removed: () => void;
}): JSX.Element => {
  const { model, accessKey, removed } = props;
  const { busy, trouble, act } = useAction();
  const remove = () => {
    if (!confirm(`Remove ${accessKey.name}? What uses it ends at once.`)) return;
    void act(async () => {
      await model.removeKey(accessKey.id);
      removed();
    });
  };
  return (
    <>
      <TroubleBox trouble={trouble} />
      <button type="button" disabled={busy} onClick={remove}>
        Remove
        <span class="unseen">{` ${accessKey.name}`}</span>
      </button>
    </>
  );
};

const NewKey = ({ model, made }: { model: Model; made: () => void }): JSX.Element => {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly KeyScope[]>(["read"]);
  const [where, setWhere] = useState("");
  const [days, setDays] = useState("30");
  const [token, setToken] = useState<string | null>(null);
  const { busy, trouble, act } = useAction();

  const submit = () =>
    act(async () => {
      const ends = days === "" ? {} : { expires_at: inDays(Number(days)) };
      const chosen = where.trim() === "" ? {} : { where: where.trim() };
      const body = { name: name.trim(), scopes: [...scopes], ...chosen, ...ends };
      setToken((await model.addKey(body)).api_token);
      setName("");
      made();
    });
  const toggle = (scope: KeyScope, isOn: boolean) =>
    setScopes(KEY_SCOPES.filter((each) => (each === scope ? isOn : scopes.includes(each))));

  return (
    <details class="manage">
      <summary>Make a key</summary>
      <p>
        It stands in the account token's place and reaches less: for CI, or for somebody else. It
        opens no packet by itself.
      </p>
      <TroubleBox trouble={trouble} />
      <form onSubmit={submit}>
        <Input id="key-name" label="Name" required maxLength={64} value={name} set={setName} />
        <fieldset>
          <legend>What it may do</legend>
          {KEY_SCOPES.map((scope) => (
            <label class="check">
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={({ currentTarget }) => toggle(scope, currentTarget.checked)}
              />
              {` ${scope}: ${MEANINGS[scope]}`}
            </label>
          ))}
        </fieldset>
        <Input
          id="key-where"
          label="Only these agents"
          hint="A selector by id and label.KEY, such as `label.site=hall-7`. Empty: all, later ones too."
          value={where}
          set={setWhere}
        />
        <Input
          id="key-days"
          label="Ends after (days)"
          hint="Empty: when it is removed."
          type="number"
          min={1}
          max={36500}
          value={days}
          set={setDays}
        />
        <button type="submit" class="primary" disabled={busy || scopes.length === 0}>
          Make the key
        </button>
      </form>
      {token !== null && (
        <div role="status">
          <p>The new key. It is shown only here.</p>
          <pre tabIndex={0} role="region" aria-label="Access key">
            {token}
          </pre>
        </div>
      )}
    </details>
  );
};

const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
