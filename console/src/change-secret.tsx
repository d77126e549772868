/** A new end-to-end secret for a device, over the air. It is saved as a file before it is sent. */
import { makeToken, tokenProblem } from "@blindrelay/protocol";
import { toBase64url } from "@blindrelay/protocol/crypto";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Input, TroubleBox, useAction, useWarning } from "./components.tsx";
import { saveEntry } from "./keyring-entry.tsx";
import type { Model, Renewal } from "./model.ts";
import { Trouble } from "./rest.ts";
import type { FoundSecret } from "./secret-file.ts";

const random = (length: number): Uint8Array => crypto.getRandomValues(new Uint8Array(length));

const readPushKey = (text: string): string => {
  const key = text.trim();
  const problem = key === "" ? null : tokenProblem(key, "push");
  if (problem === null) return key;
  throw new Trouble(`The push key: ${problem}.`, "It is the text in the push key's file.", "");
};

export const ChangeSecret = (props: {
  model: Model;
  agentId: string;
  secret: FoundSecret;
}): JSX.Element => {
  const { model, agentId, secret } = props;
  const [sent, setSent] = useState<Renewal | null>(null);
  const [pushKey, setPushKey] = useState("");
  const [isDone, setDone] = useState(false);
  const { busy, trouble, act } = useAction();
  useWarning(busy);

  const make = () => {
    const renewed = { ...secret, agentToken: makeToken("e2e", random(32)) };
    saveEntry(agentId, renewed);
    setSent({ renewed, id: toBase64url(random(16)) });
    setDone(false);
  };
  const change = () =>
    act(async () => {
      await model.rekey(agentId, sent as Renewal, readPushKey(pushKey));
      setSent(null);
      setPushKey("");
      setDone(true);
    });

  return (
    <details class="manage">
      <summary>Change its secret</summary>
      <p>
        {
          "The device gets a new end-to-end secret over the air, and forgets this one. Everybody else "
        }
        {
          "who calls it needs the new file. Under packet versions 1 and 2, whoever has this secret and "
        }
        {"a recording of the change finds the new one."}
      </p>
      <TroubleBox trouble={trouble} />
      {sent === null ? (
        <button type="button" onClick={make}>
          Make a new secret and save it
        </button>
      ) : (
        <form onSubmit={change}>
          <p>
            {"Make sure that the file is saved. If the device does not answer, it may have either "}
            {"secret: keep both files, and send it again."}
          </p>
          <Input
            id="push-key"
            label="Push key"
            hint="Only for a device that was provisioned with one."
            type="password"
            value={pushKey}
            set={setPushKey}
          />
          <p class="buttons">
            <button type="submit" class="primary" disabled={busy}>
              {busy ? "Sending…" : "Send it to the device"}
            </button>
            <button type="button" disabled={busy} onClick={() => saveEntry(agentId, sent.renewed)}>
              Save it once more
            </button>
          </p>
        </form>
      )}
      <p role="status">
        {isDone && `${agentId} has the new secret. Older files of it are useless.`}
      </p>
    </details>
  );
};
