/** What stands where a pseudo-terminal's link would be made. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Remote } from "./local-side.ts";
import { openPtySide } from "./pty-side.ts";

it.skipIf(process.platform === "win32")(
  "a path that is no dead link of ours is left alone, and it is said what it is",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "file"), "");
    symlinkSync("/nowhere", join(folder, "link"));
    const refusal = (name: string) =>
      openPtySide({} as Remote, {
        path: join(folder, name),
        isOurs: () => false,
        made: () => undefined,
      }).then(
        () => "made",
        (error: Error) => error.message.slice(folder.length + 1),
      );
    expect(await refusal("file")).toBe(
      "file exists, and it is no link that an ended attach has left",
    );
    expect(await refusal("link")).toBe(
      "link exists, and it is a link to /nowhere, none that an ended attach has left",
    );
  },
);
