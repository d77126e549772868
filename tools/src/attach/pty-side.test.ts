/** What stands where a pseudo-terminal's link would be made. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_SETTINGS, settingsAsJson } from "@blindrelay/protocol/serial";
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

it.skipIf(process.platform !== "linux")(
  "what a program sets before the port is there is passed on, else it finds the port's rate",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const opened = async (name: string) => {
      const path = join(folder, name);
      const asked: object[] = [];
      const remote = {
        settings: null as Remote["settings"],
        configure: async (change: object) => void asked.push(change),
      };
      const place = { path, isOurs: () => false, made: () => undefined };
      const side = await openPtySide(remote as unknown as Remote, place);
      onTestFinished(() => side.close());
      const there = (baudRate = 9_600) => {
        remote.settings = settingsAsJson({ ...DEFAULT_SETTINGS, baudRate });
        side.up?.();
      };
      const stty = (...words: string[]) =>
        execFileSync("stty", ["-F", path, ...words], { encoding: "utf8" });
      return { asked, there, stty };
    };
    const early = await opened("early");
    early.stty("115200", "cstopb");
    early.there();
    expect(early.asked).toEqual([{ baud_rate: 115_200, stop_bits: 2 }]);
    expect(early.stty("speed").trim()).toBe("115200");
    early.there();
    const late = await opened("late");
    late.there();
    expect(late.stty("speed").trim()).toBe("9600");
    late.stty("57600");
    late.there();
    expect(late.asked).toEqual([{ baud_rate: 57_600 }]);
    expect(early.asked).toHaveLength(1);
    for (const rate of [50, 38_400, 57_600, 4_000_000]) {
      const other = await opened(`rate${rate}`);
      other.there(rate);
      expect(other.stty("speed").trim()).toBe(String(rate));
    }
  },
);
