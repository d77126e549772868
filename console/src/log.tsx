/** What an opened agent logged, and why it restarted: `system.log`, followed. */
import { restartText } from "@blindrelay/client-sdk/browser";
import type { DeviceStart, LogAnswer } from "@blindrelay/protocol";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { readLines, readLog } from "./answers.ts";
import { TroubleBox, useAction } from "./components.tsx";
import type { Opened } from "./model.ts";

/** For display: the agent keeps more. */
const SHOWN = 200;

export const LogOf = ({ opened }: { opened: Opened }): JSX.Element | null => {
  const { link, info } = opened;
  const [log, setLog] = useState<LogAnswer | null>(null);
  const { busy, trouble, act } = useAction();
  const read = () =>
    act(async () => {
      setLog(readLog(await link.call("system.log", { follow: true }, { idempotent: true })));
    });
  useEffect(() => {
    const add = (event: string, data: unknown) => {
      if (event !== "system.logged") return;
      setLog((now) => {
        if (now === null) return null;
        const last = now.lines.at(-1)?.n ?? 0;
        const fresh = readLines(data).filter(({ n }) => n > last);
        return { ...now, lines: [...now.lines, ...fresh].slice(-SHOWN) };
      });
    };
    const ends = [link.on("event", add), link.on("reopened", () => void read())];
    void read();
    return () => {
      for (const end of ends) end();
    };
  }, [link]);
  if (!info.methods?.includes("system.log")) return null;
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      <TroubleBox trouble={trouble} />
      {log !== null && <p>{startText(log)}</p>}
      <div role="log" aria-label="Log, oldest first">
        {log !== null && log.lines.length === 0 && <p class="faint">Nothing yet.</p>}
        {log !== null && log.lines.length > 0 && (
          <ol class="heard">
            {log.lines.map(({ n, at_ms, level, text }) => (
              <li key={n} class={level === "error" ? "missing" : level}>
                {`${(at_ms / 1000).toFixed(3)} s `}
                <strong>{level}</strong> <code>{text}</code>
              </li>
            ))}
          </ol>
        )}
      </div>
      <button type="button" disabled={busy} onClick={() => void read()}>
        Read again
      </button>
    </section>
  );
};

const startText = ({ boot, restart: { reason, text }, dropped }: DeviceStart): string => {
  const why = restartText(reason);
  const failure = text === "" ? "" : ` Last failure: ${text}.`;
  return `Start ${boot}; ${why}.${failure}${dropped > 0 ? ` ${dropped} lines are no longer kept.` : ""}`;
};
