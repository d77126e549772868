import { afterEach, expect, it, vi } from "vitest";
import { startCommand } from "./start-command.ts";

afterEach(() => void vi.unstubAllGlobals());

/** On a Node of this version, a command of this package, which needs 20.19.0. */
const startOn = async (version: string) => {
  let said = "";
  const process = {
    versions: { node: version },
    version: `v${version}`,
    stderr: {
      write: (text: string) => {
        said += text;
      },
    },
    exitCode: undefined as number | undefined,
  };
  vi.stubGlobal("process", process);
  let isStarted = false;
  await startCommand("blindrelay", import.meta.url, async () => {
    isStarted = true;
  });
  return { isStarted, said, exitCode: process.exitCode };
};

it.each(["20.19.0", "20.20.1", "21.0.0", "100.2.0"])("starts on Node %s", async (version) => {
  expect(await startOn(version)).toEqual({ isStarted: true, said: "", exitCode: undefined });
});

it.each(["20.18.3", "18.99.0", "9.30.0"])("says what it needs on Node %s", async (version) => {
  expect(await startOn(version)).toEqual({
    isStarted: false,
    said: `blindrelay needs Node 20.19.0 or newer; this is v${version}\n`,
    exitCode: 2,
  });
});
