/** An agent's secret on its way to the command line or to another console: a file or a QR code. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { loadBoardCode } from "./board-code.ts";
import { TroubleBox, useAction } from "./components.tsx";
import { entryOf, type FoundSecret } from "./secret-file.ts";

/** As a download: the page sends nothing. */
export const saveEntry = (agentId: string, secret: FoundSecret): void => {
  const text = entryOf(agentId, secret);
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: `${agentId}.keyring.json` });
  link.click();
  URL.revokeObjectURL(url);
};

/** Black on white in dark mode too: cameras expect it. */
const QrCode = (props: { rows: readonly (readonly boolean[])[]; label: string }): JSX.Element => {
  const { rows, label } = props;
  const dark = rows.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
  );
  return (
    <svg class="qr" viewBox={`0 0 ${rows.length} ${rows.length}`} role="img" aria-label={label}>
      <path d={dark.join("")} />
    </svg>
  );
};

export const KeyringEntry = (props: {
  agentId: string;
  secret: FoundSecret;
  /** The user has it in another place, too. */
  kept: () => void;
}): JSX.Element => {
  const { agentId, secret, kept } = props;
  const [rows, setRows] = useState<readonly (readonly boolean[])[] | null>(null);
  const { busy, trouble, act } = useAction();
  const text = entryOf(agentId, secret);
  const download = () => {
    saveEntry(agentId, secret);
    kept();
  };
  const show = () =>
    act(async () => {
      setRows((await loadBoardCode()).qrCodeOf(text));
      kept();
    });
  return (
    <>
      <p>
        {"Whoever has this secret can call the device and read what it says. The file, or the "}
        {"QR code's text, is for "}
        <code>blindrelay agent import</code>
        {" or the keyring field of another console."}
      </p>
      <TroubleBox trouble={trouble} />
      <p class="buttons">
        <button type="button" onClick={download}>
          Save its secret as a file
        </button>
        <button type="button" disabled={busy} onClick={() => (rows ? setRows(null) : void show())}>
          {rows ? "Hide the QR code" : "Show it as a QR code"}
        </button>
      </p>
      {rows && <QrCode rows={rows} label={`Secret of ${agentId}, as a QR code`} />}
    </>
  );
};
