/** One call to each of the agents that the list shows: in stages, with an outcome for each. */
import { type FleetOutcome, outcomesText } from "@blindrelay/client-sdk/browser";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { readParams } from "./agent.tsx";
import { Field, Input, Table, TroubleBox, useWarning } from "./components.tsx";
import type { Many, Model } from "./model.ts";

const NONE: Many = { total: 0, outcomes: [], isRunning: false, trouble: null };

/** Outcomes that are drawn: those that are not ok come first. */
const SHOWN = 100;

const COLUMNS = ["Agent", "Outcome", "Answer or reason"];
const STAGES = [
  ["", "all at once"],
  ["0.05", "5 % first, then 10, 20, 40 and 100 %"],
  ["0.1", "10 % first, then 20, 40 and 100 %"],
] as const;

export const CallMany = ({ model, ids }: { model: Model; ids: readonly string[] }): JSX.Element => {
  const [method, setMethod] = useState("system.info");
  const [params, setParams] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [staged, setStaged] = useState("");
  const [abortOver, setAbortOver] = useState("");
  const { total, outcomes, isRunning, trouble } = model.many ?? NONE;
  useWarning(isRunning);

  const submit = () => {
    const given = readParams(params);
    setProblem(given.problem);
    if (given.problem !== null) return;
    const many = `${ids.length} ${ids.length === 1 ? "agent" : "agents"}`;
    if (!confirm(`Call ${method} of ${many}?`)) return;
    void model.callMany(ids, method, given.value, {
      ...(staged === "" ? {} : { staged: Number(staged) }),
      ...(abortOver === "" ? {} : { abortOver: Number(abortOver) / 100 }),
    });
  };

  return (
    <details class="manage" open={model.many !== null}>
      <summary>Call these agents</summary>
      <p>
        Those that the list shows now. Agents whose secret is not in this page are skipped: load
        your keyring above.
      </p>
      <TroubleBox trouble={trouble} />
      <form onSubmit={submit}>
        <Input id="many-method" label="Method of each" required value={method} set={setMethod} />
        <div class="row">
          <Field id="many-staged" label="Stages">
            <select
              id="many-staged"
              onChange={({ currentTarget }) => setStaged(currentTarget.value)}
            >
              {STAGES.map(([value, text]) => (
                <option value={value} selected={value === staged}>
                  {text}
                </option>
              ))}
            </select>
          </Field>
          <Input
            id="many-abort"
            label="Stop over (% not ok)"
            type="number"
            min={0}
            max={100}
            value={abortOver}
            set={setAbortOver}
          />
        </div>
        <Field id="many-params" label="Parameters of each" hint="JSON. May stay empty.">
          <textarea
            id="many-params"
            rows={2}
            spellcheck={false}
            value={params}
            aria-invalid={problem !== null}
            aria-describedby="many-params-hint"
            onInput={({ currentTarget }) => setParams(currentTarget.value)}
          />
          {problem !== null && <p class="problem">{problem}</p>}
        </Field>
        <button type="submit" class="primary" disabled={isRunning || ids.length === 0}>
          {isRunning ? "Calling…" : `Call ${ids.length}`}
        </button>{" "}
        <button type="button" disabled={!isRunning} onClick={() => model.stopMany()}>
          Stop
        </button>
      </form>
      {total > 0 && (
        <>
          <p role="status">
            {[`${outcomes.length} of ${total}`, outcomesText(outcomes)].filter(Boolean).join(": ")}
          </p>
          <progress aria-label="Agents called" max={total} value={outcomes.length} />
        </>
      )}
      {outcomes.length > 0 && (
        <Table caption="Outcomes" columns={COLUMNS} rows={notOkFirst(outcomes).map(rowOf)} />
      )}
    </details>
  );
};

const notOkFirst = (outcomes: readonly FleetOutcome[]): readonly FleetOutcome[] =>
  [
    ...outcomes.filter(({ outcome }) => outcome !== "ok"),
    ...outcomes.filter(({ outcome }) => outcome === "ok"),
  ].slice(0, SHOWN);

const rowOf = ({ agentId, outcome, result, error }: FleetOutcome) => ({
  key: agentId,
  cells: [
    <a href={`#/agents/${agentId}`}>{agentId}</a>,
    outcome,
    outcome === "ok" ? <code>{JSON.stringify(result ?? null)}</code> : error,
  ],
});
