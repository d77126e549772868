/** What an admin can do with a release: publish it, roll it out, pause it, withdraw it. */
import type { Release, ReleasePatch } from "@blindrelay/protocol/schema/rest";
import { Fragment, h, type JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { TroubleBox } from "./components.ts";
import { type Model, troubleOfCall } from "./model.ts";
import type { Trouble } from "./rest.ts";

interface Props {
  readonly model: Model;
  readonly release: Release;
  /** Gets the updated release; null: it is gone. */
  readonly changed: (release: Release | null) => void;
}

export const Manage = ({ model, release, changed }: Props): JSX.Element => {
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [busy, setBusy] = useState(false);
  const name = `${release.runtime} ${release.channel} ${release.version}`;

  const act = async (what: () => Promise<Release | null>): Promise<void> => {
    setBusy(true);
    setTrouble(null);
    try {
      changed(await what());
    } catch (error) {
      setTrouble(troubleOfCall(error));
    }
    setBusy(false);
  };
  const patch = (body: ReleasePatch) => act(() => model.changeRelease(release.id, body));
  const button = (text: string, onClick: () => unknown) =>
    h("button", { type: "button", disabled: busy, onClick }, text);

  return h(
    "details",
    { class: "manage" },
    h("summary", null, "Manage", h("span", { class: "unseen" }, ` ${name}`)),
    h(TroubleBox, { trouble }),
    release.status === "draft" &&
      h(
        Fragment,
        null,
        release.size === null
          ? h("p", { class: "hint" }, "Its artifact is missing: run blindrelay release publish.")
          : button("Publish", () => patch({ status: "published" })),
        button("Delete the draft", () => {
          if (confirm(`Delete the draft ${name}?`)) {
            void act(() => model.deleteDraft(release.id).then(() => null));
          }
        }),
      ),
    release.status === "published" &&
      h(
        Fragment,
        null,
        h(PercentForm, {
          percent: release.rollout.percent,
          busy,
          submit: (percent) => void patch({ rollout: { percent } }),
        }),
        release.rollout.paused
          ? button("Resume", () => patch({ rollout: { paused: false } }))
          : button("Pause", () => patch({ rollout: { paused: true } })),
        button("Withdraw", () => {
          if (confirm(`Withdraw ${name} for good? Devices that have it keep it.`)) {
            void patch({ status: "yanked" });
          }
        }),
      ),
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
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    submit(Number(new FormData(form).get("percent")));
  };
  return h(
    "form",
    { onSubmit },
    h("label", { for: id }, "Percent of the devices"),
    h(
      "div",
      { class: "beside" },
      h("input", {
        id,
        name: "percent",
        type: "number",
        min: 0,
        max: 100,
        step: 1,
        defaultValue: String(percent),
        required: true,
      }),
      h("button", { type: "submit", disabled: busy }, "Roll out"),
    ),
  );
};
