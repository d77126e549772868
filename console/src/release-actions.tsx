/** What an admin can do with a release: publish it, roll it out, pause it, withdraw it. */
import type { Release, ReleasePatch } from "@blindrelay/protocol/schema/rest";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { TroubleBox, useAction } from "./components.tsx";
import type { Model } from "./model.ts";

interface Props {
  readonly model: Model;
  readonly release: Release;
  /** Gets the updated release; null: it is gone. */
  readonly changed: (release: Release | null) => void;
}

export const Manage = ({ model, release, changed }: Props): JSX.Element => {
  const { busy, trouble, act } = useAction();
  const name = `${release.runtime} ${release.channel} ${release.version}`;

  const change = (what: () => Promise<Release | null>) => act(async () => changed(await what()));
  const patch = (body: ReleasePatch) => change(() => model.changeRelease(release.id, body));
  const button = (text: string, onClick: () => unknown) => (
    <button type="button" disabled={busy} onClick={onClick}>
      {text}
    </button>
  );

  return (
    <details class="manage">
      <summary>
        Manage
        <span class="unseen">{` ${name}`}</span>
      </summary>
      <TroubleBox trouble={trouble} />
      {release.status === "draft" && (
        <>
          {release.size === null ? (
            <p class="hint">Its artifact is missing: run blindrelay release publish.</p>
          ) : (
            button("Publish", () => patch({ status: "published" }))
          )}
          {button("Delete the draft", () => {
            if (confirm(`Delete the draft ${name}?`)) {
              void change(() => model.deleteDraft(release.id).then(() => null));
            }
          })}
        </>
      )}
      {release.status === "published" && (
        <>
          <PercentForm
            percent={release.rollout.percent}
            busy={busy}
            submit={(percent) => void patch({ rollout: { percent } })}
          />
          {release.rollout.paused
            ? button("Resume", () => patch({ rollout: { paused: false } }))
            : button("Pause", () => patch({ rollout: { paused: true } }))}
          {button("Withdraw", () => {
            if (confirm(`Withdraw ${name} for good? Devices that have it keep it.`)) {
              void patch({ status: "yanked" });
            }
          })}
        </>
      )}
    </details>
  );
};

const PercentForm = (props: {
  percent: number;
  busy: boolean;
  submit: (percent: number) => void;
}): JSX.Element => {
  const id = useId();
  const { percent, busy, submit } = props;
  const onSubmit = (event: SubmitEvent) => {
    const form = event.currentTarget as HTMLFormElement;
    submit(Number(new FormData(form).get("percent")));
  };
  return (
    <form onSubmit={onSubmit}>
      <label for={id}>Percent of the devices</label>
      <div class="beside">
        <input
          id={id}
          name="percent"
          type="number"
          min={0}
          max={100}
          step={1}
          defaultValue={String(percent)}
          required
        />
        <button type="submit" disabled={busy}>
          Roll out
        </button>
      </div>
    </form>
  );
};
