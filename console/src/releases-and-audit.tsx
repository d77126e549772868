/** Releases, and the audit log. */
import type { AuditEntry, Release } from "@blindrelay/protocol/schema/rest";
import type { JSX } from "preact";
import { Moment } from "./components.tsx";
import { Listing } from "./listing.tsx";
import type { Model } from "./model.ts";
import { Manage } from "./release-actions.tsx";

const RELEASES = ["Release", "Status", "Rollout", "Devices", "Published"];
const MANAGED = [...RELEASES, "Change"];

export const Releases = ({ model }: { model: Model }): JSX.Element => (
  <Listing<Release>
    title="Releases"
    empty={
      <>
        {"There are no releases yet. Create one with "}
        <code>blindrelay release publish</code>.
      </>
    }
    columns={model.user.role === "admin" ? MANAGED : RELEASES}
    read={(cursor) => model.releases(cursor)}
    row={(release, changed) => {
      const { id, runtime, channel, version, status, rollout, published_at: at } = release;
      const { percent, paused, offered, running, left } = rollout;
      const text = `${percent} %${paused ? ", paused" : ""}`;
      const name = `${runtime} ${channel} ${version}`;
      return {
        key: id,
        cells: [
          <>
            <strong>{version}</strong> <code>{`${runtime} ${channel}`}</code>
          </>,
          <span class={`tag ${status}`}>{status}</span>,
          status === "draft" ? (
            <span class="faint">not begun</span>
          ) : (
            <span class="rollout">
              <meter min={0} max={100} value={percent} aria-label={`Rollout of ${name}`} />
              {text}
            </span>
          ),
          `${running} run it, ${offered} offered${left > 0 ? `, ${left} fell back` : ""}`,
          <Moment at={at} none="not yet" />,
          model.user.role === "admin" && status !== "yanked" && (
            <Manage model={model} release={release} changed={changed} />
          ),
        ],
      };
    }}
  />
);

const AUDIT = ["When", "Who", "What", "Subject", "Detail"];

export const Audit = ({ model }: { model: Model }): JSX.Element => (
  <Listing<AuditEntry>
    title="Audit"
    empty="No entries yet."
    columns={AUDIT}
    read={(cursor) => model.audit(cursor)}
    row={({ id, at, actor, action, subject, detail }) => ({
      key: String(id),
      cells: [
        <Moment at={at} />,
        actor?.username ?? <span class="faint">the relay's operator</span>,
        <code>{action}</code>,
        <code title={subject}>{model.usernames.get(subject) ?? subject}</code>,
        Object.entries(detail)
          .map(([name, value]) => `${name} ${value}`)
          .join(", "),
      ],
    })}
  />
);
