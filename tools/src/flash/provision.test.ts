import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFile } from "@blindrelay/agent-sdk/board";
import { makeToken } from "@blindrelay/protocol";
import { expect, it, onTestFinished } from "vitest";
import { provisionFolder } from "./provision.ts";

const config = {
  url: "wss://relay.example/wss",
  agent_id: "pump-7",
  relay_token: makeToken("agent", new Uint8Array(32)),
  agent_token: makeToken("e2e", new Uint8Array(32)),
  v: "1",
} as const;

const inFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-provision-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
};

it("a folder that contains a board's configuration keeps it, and gets no other file", () => {
  const folder = inFolder();
  const { name } = configFile(config);
  writeFileSync(join(folder, name), "of another board");
  expect(() => provisionFolder(folder, config, "espruino")).toThrow("already contains");
  expect(readdirSync(folder)).toEqual([name]);
});

it.each(["file", "file/below"])(
  "a path that cannot be a folder is a wrong argument: %s",
  (path) => {
    const folder = inFolder();
    writeFileSync(join(folder, "file"), "");
    const provision = () => provisionFolder(join(folder, path), config, "espruino");
    expect(provision).toThrow(expect.objectContaining({ kind: "usage" }));
    expect(provision).toThrow("cannot write");
  },
);
