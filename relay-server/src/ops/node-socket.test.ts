/**
 * The socket through which a command reaches a node: long folders, leftovers, and who may use it.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../log.ts";
import { askNode, listenForCommands, type Rebalance } from "./node-socket.ts";

let data: string;
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "blindrelay-socket-"));
  data = join(root, "a folder with a long name ".repeat(8), "relay");
  mkdirSync(data, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

const log = createLog("silent");
const half: Rebalance = async (percent, show) => {
  show({ asked: percent, moved: 1 });
  return { links: 100, asked: percent, moved: percent };
};

test("works in a folder whose path is too long for a socket, over what a crash left behind, for its owner only", async () => {
  const path = join(data, "node.sock");
  writeFileSync(path, "");
  const listening = await listenForCommands(data, half, log);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const shown: unknown[] = [];
  const made = await askNode(data, 50, (progress) => shown.push(progress));
  expect(made).toEqual({ links: 100, asked: 50, moved: 50 });
  expect(shown).toEqual([{ asked: 50, moved: 1 }]);
  listening?.close();
  expect(existsSync(path)).toBe(false);
  await expect(askNode(data, 50, () => undefined)).rejects.toThrow("no node of a cluster runs on");
});

test("a second node on the folder leaves the first one's socket alone", async () => {
  const first = await listenForCommands(data, half, log);
  expect(await listenForCommands(data, half, log)).toBeNull();
  expect(await askNode(data, 20, () => undefined)).toMatchObject({ moved: 20 });
  first?.close();
});

test("a refusal arrives with its reason; a fault of the node is none", async () => {
  let error: Error = new Failure("refused", "not now");
  const listening = await listenForCommands(data, () => Promise.reject(error), log);
  const ask = () => askNode(data, 20, () => undefined);
  await expect(ask()).rejects.toMatchObject({ exitCode: 5, message: "not now" });
  error = new Error("a bug");
  await expect(ask()).rejects.toMatchObject({ exitCode: 4 });
  listening?.close();
});
