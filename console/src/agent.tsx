/** One agent: what the relay knows of it and, with its secret, its methods and events. */
import { CallError } from "@blindrelay/client-sdk/browser";
import { REKEY_METHOD } from "@blindrelay/client-sdk/rekey";
import type { Version } from "@blindrelay/protocol/crypto";
import { parseJson } from "@blindrelay/protocol/parse-json";
import type { Agent as AgentRow } from "@blindrelay/protocol/schema/rest";
import type { JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ManageAgent } from "./agent-actions.tsx";
import { ChangeSecret } from "./change-secret.tsx";
import {
  type Fact,
  FactList,
  Field,
  FileInput,
  Heading,
  Input,
  Moment,
  Presence,
  TroubleBox,
  TroubleText,
  useAction,
  useModel,
} from "./components.tsx";
import { HeardList } from "./events.tsx";
import { KeyringEntry } from "./keyring-entry.tsx";
import { LogOf } from "./log.tsx";
import { type Model, type Opened, troubleOfCall } from "./model.ts";
import { Trouble } from "./rest.ts";
import { keyringIn, secretIn } from "./secret-file.ts";

/** Of JSON-RPC. */
const METHOD_NOT_FOUND = -32601;

export const AgentView = ({ model, agentId }: { model: Model; agentId: string }): JSX.Element => {
  useModel(model);
  const [found, setFound] = useState<AgentRow | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  useEffect(() => {
    model.findAgent(agentId).then(setFound, (error) => setTrouble(troubleOfCall(error)));
  }, [model, agentId]);
  const kept = model.secrets.get(agentId);
  useEffect(() => {
    if (kept === undefined || model.opened.has(agentId)) return;
    model
      .open(agentId, kept)
      .then(() => setTrouble(null))
      .catch((error) => setTrouble(troubleOfCall(error)));
  }, [model, agentId, kept]);
  const row = model.agents.find(({ agent_id }) => agent_id === agentId) ?? found;
  const opened = model.opened.get(agentId);
  return (
    <>
      <Heading>{row?.name ?? agentId}</Heading>
      {/* Why another secret did not open it is of no use once it is open. */}
      <TroubleBox trouble={row && opened ? null : trouble} />
      {row && <Facts model={model} row={row} opened={opened} />}
      {row && <ManageAgent model={model} row={row} />}
      {row && opened === undefined && <SecretForm model={model} agentId={agentId} />}
      {opened && <CallForm opened={opened} />}
      {opened && <LogOf opened={opened} />}
      {kept && (
        <details class="manage">
          <summary>Take its secret to another machine</summary>
          <KeyringEntry
            agentId={agentId}
            secret={kept}
            kept={() => model.keepsElsewhere(agentId)}
          />
        </details>
      )}
      {opened?.info.methods?.includes(REKEY_METHOD) && kept && (
        <ChangeSecret model={model} agentId={agentId} secret={kept} />
      )}
      {opened && (
        <section aria-labelledby="events">
          <h2 id="events">Events</h2>
          <HeardList model={model} agentId={agentId} />
        </section>
      )}
    </>
  );
};

const Facts = (props: { model: Model; row: AgentRow; opened: Opened | undefined }): JSX.Element => {
  const { model, row, opened } = props;
  const unknown = <span class="faint">unknown</span>;
  const facts: Fact[] = [
    ["Identifier", <code>{row.agent_id}</code>],
    ["Presence", <Presence online={model.isOnline(row)} />],
    ["Firmware", row.firmware_version ?? unknown],
    ["Runtime", row.runtime ?? unknown],
    ["Last seen", model.isOnline(row) ? "now" : <Moment at={row.last_seen} />],
    ["Created", <Moment at={row.created_at} />],
    ["Labels", labelsText(row) || <span class="faint">none</span>],
  ];
  const { free_memory: free, uptime_s: uptime, sdk_version: sdk } = opened?.info ?? {};
  if (sdk !== undefined) facts.push(["SDK", sdk]);
  if (uptime !== undefined) facts.push(["Up since", <Moment at={agoText(uptime)} />]);
  if (free !== undefined) facts.push(["Free memory", bytesText(free)]);
  return <FactList facts={facts} />;
};

export const labelsText = ({ labels }: AgentRow): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");

/** Boards have kilobytes, servers gigabytes. */
export const bytesText = (bytes: number): string => {
  const [unit, size] = (
    [
      ["GB", 1e9],
      ["MB", 1e6],
      ["kB", 1e3],
    ] as const
  ).find(([, size]) => bytes >= size) ?? ["bytes", 1];
  return `${(bytes / size).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${unit}`;
};

const agoText = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();

const SecretForm = ({ model, agentId }: { model: Model; agentId: string }): JSX.Element => {
  const [secret, setSecret] = useState("");
  const [version, setVersion] = useState<Version>("1");
  const [deviceKey, setDeviceKey] = useState<string | undefined>(undefined);
  const { busy, trouble, setTrouble, act } = useAction();

  const submit = () =>
    act(() => model.open(agentId, { agentToken: secret.trim(), version, deviceKey }));
  const take = (text: string) => {
    const read = secretIn(text, agentId);
    model.addSecrets(keyringIn(text));
    setSecret(read.agentToken);
    setDeviceKey(read.deviceKey);
    if (read.version !== null) setVersion(read.version);
  };

  return (
    <section aria-labelledby="open">
      <h2 id="open">Open this agent</h2>
      <p>
        Its end-to-end secret seals calls and opens events in this page. It is never sent and never
        stored: it is gone when you close or reload the page.
      </p>
      <TroubleBox trouble={trouble} />
      <form onSubmit={submit}>
        <Input
          id="secret"
          label="End-to-end secret"
          hint={`It begins with e2e_. \`blindrelay agent add\` made it and keeps it in your keyring.`}
          type="password"
          required
          value={secret}
          set={setSecret}
        />
        <div class="row">
          <Field id="file" label="… or load it from a file">
            <FileInput id="file" take={take} setTrouble={setTrouble} />
          </Field>
          <Field id="version" label="Packet version">
            <select
              id="version"
              value={version}
              onChange={({ currentTarget }) => setVersion(currentTarget.value as Version)}
            >
              <option value="1">1 (ChaCha20-Poly1305)</option>
              <option value="2">2 (AES-CCM, some boards)</option>
              <option value="3">3 (as 1, with forward secrecy)</option>
              <option value="4">4 (as 2, with forward secrecy)</option>
            </select>
          </Field>
        </div>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Asking…" : "Open"}
        </button>
      </form>
    </section>
  );
};

interface Outcome {
  readonly method: string;
  readonly ms: number;
  readonly result?: unknown;
  readonly trouble?: Trouble;
}

const CallForm = ({ opened }: { opened: Opened }): JSX.Element => {
  const { info, link } = opened;
  const methods = info.methods ?? [];
  const own = methods.filter((name) => !name.startsWith("system."));
  const [method, setMethod] = useState(own[0] ?? "system.info");
  const [params, setParams] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [seconds, setSeconds] = useState("30");
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const list = useId();
  const first = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => first.current?.focus(), []); // the form that had the focus has been removed

  const submit = async () => {
    const given = readParams(params);
    setProblem(given.problem);
    setOutcome(null);
    if (given.problem !== null) {
      document.getElementById("params")?.focus();
      return;
    }
    setBusy(true);
    const started = performance.now();
    const done = (rest: Pick<Outcome, "result" | "trouble">) => {
      setOutcome({ method, ms: Math.round(performance.now() - started), ...rest });
      setBusy(false);
    };
    try {
      done({ result: await link.call(method, given.value, { timeoutMs: Number(seconds) * 1000 }) });
    } catch (error) {
      const trouble = troubleOfCall(error);
      const isUnknown = error instanceof CallError && error.remote?.code === METHOD_NOT_FOUND;
      const fix = `It has ${own.length === 0 ? "none of its own" : own.join(", ")}.`;
      done({ trouble: isUnknown ? new Trouble(trouble.message, fix, trouble.code) : trouble });
    }
  };

  const described = problem === null ? "params-hint" : "params-problem params-hint";
  return (
    <section aria-labelledby="call">
      <h2 id="call">Call a method</h2>
      <form onSubmit={submit}>
        <div class="row">
          <Field id="method" label="Method">
            <input
              id="method"
              ref={first}
              list={list}
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              required
              value={method}
              onInput={({ currentTarget }) => setMethod(currentTarget.value)}
            />
            <datalist id={list}>
              {methods.map((name) => (
                <option value={name} />
              ))}
            </datalist>
          </Field>
          <Input
            id="timeout"
            label="Wait at most (s)"
            type="number"
            min={1}
            max={3600}
            required
            value={seconds}
            set={setSeconds}
          />
        </div>
        <Field
          id="params"
          label="Parameters"
          hint={'JSON, an object or an array, such as {"percent": 40}. May stay empty.'}
        >
          <textarea
            id="params"
            rows={4}
            spellcheck={false}
            autocomplete="off"
            value={params}
            aria-describedby={described}
            aria-invalid={problem !== null}
            onInput={({ currentTarget }) => setParams(currentTarget.value)}
          />
          {problem !== null && (
            <p id="params-problem" class="problem">
              {problem}
            </p>
          )}
        </Field>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Calling…" : "Call"}
        </button>
      </form>
      <div aria-live="polite" class="outcome">
        {outcome !== null && !busy && <OutcomeBox outcome={outcome} />}
      </div>
    </section>
  );
};

const OutcomeBox = ({ outcome }: { outcome: Outcome }): JSX.Element => {
  const { method, ms, result, trouble } = outcome;
  if (trouble !== undefined) return <TroubleText trouble={trouble} of={method} />;
  return (
    <>
      <p>
        <strong>{method}</strong>
        {` answered after ${ms} ms`}
      </p>
      <pre tabIndex={0} role="region" aria-label="Result">
        {JSON.stringify(result ?? null, null, 2)}
      </pre>
    </>
  );
};

/** Empty text means no parameters. The error names the position and the fix. */
export const readParams = (text: string): { value?: unknown; problem: string | null } => {
  if (text.trim() === "") return { problem: null };
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return { problem: `This is ${(error as Error).message}. Names need double quotes.` };
  }
  if (typeof value !== "object" || value === null) {
    return { problem: "Parameters are an object {…} or an array […]: put the value into one." };
  }
  return { value, problem: null };
};
