/** Which build is found for an agent, and that no more are kept than there should be. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SourceMap } from "@blindrelay/agent-sdk/board";
import { afterAll, beforeEach, expect, it, vi } from "vitest";
import { buildOf, buildOnPort, keepBuild, shownPath } from "./kept-builds.ts";

const home = mkdtempSync(join(tmpdir(), "blindrelay-builds-"));
let folder = "";
let count = 0;
beforeEach(() => {
  folder = join(home, String(count++), "builds");
  vi.useFakeTimers({ toFake: ["Date"] });
  return () => vi.useRealTimers();
});
afterAll(() => rmSync(home, { recursive: true }));

const idOf = (n: number): string => n.toString(16).padStart(16, "0");
const mapOf = (file: string): SourceMap => ({ files: [file], marks: null });
const keep = (n: number, agentId: string, port: string | null): void => {
  vi.advanceTimersByTime(1);
  keepBuild(folder, idOf(n), mapOf(`/p${n}.js`), { agentId, port });
};
const found = (agentId: string, id: string): string | undefined =>
  buildOf(folder, agentId, id)?.files[0];

it("finds what an agent runs by its name, else what the agent got last", () => {
  expect(found("pump-7", "")).toBe(undefined);
  keep(1, "pump-7", "/dev/ttyUSB0");
  keep(2, "pump-7", null);
  keep(3, "lamp-1", null);
  keepBuild(folder, idOf(4), mapOf("/p4.js"), null); // on trial
  expect(found("pump-7", idOf(1))).toBe("/p1.js");
  expect(found("pump-7", idOf(4))).toBe("/p4.js");
  expect(found("pump-7", "")).toBe("/p2.js");
  keep(1, "pump-7", "/dev/ttyUSB0");
  expect(found("pump-7", "")).toBe("/p1.js");
  expect(found("valve-1", "")).toBe(undefined);
  for (const id of [idOf(9), "../../secrets", "x"]) expect(found("pump-7", id)).toBe(undefined);
});

it("finds for a port what the board that was flashed there got last", () => {
  keep(1, "pump-7", "/dev/ttyUSB0");
  keep(2, "lamp-1", "/dev/ttyUSB1");
  expect(buildOnPort(folder, "/dev/ttyUSB0")?.files).toEqual(["/p1.js"]);
  keep(3, "pump-7", null);
  expect(buildOnPort(folder, "/dev/ttyUSB0")?.files).toEqual(["/p3.js"]);
  keep(4, "valve-1", "/dev/ttyUSB0");
  expect(buildOnPort(folder, "/dev/ttyUSB0")?.files).toEqual(["/p4.js"]);
  expect(buildOnPort(folder, "/dev/ttyUSB2")).toBe(null);
});

it("keeps 64 of them for the user alone, and goes on where it cannot", () => {
  for (let n = 0; n < 80; n++) keep(n, "pump-7", null);
  const names = readdirSync(folder);
  expect(names).toHaveLength(64);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of names) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  writeFileSync(join(folder, `${idOf(5)}.json`), "{");
  expect(found("pump-7", idOf(5))).toBe(undefined);
  expect(found("pump-7", "")).toBe("/p79.js");
  writeFileSync(join(home, "file"), "");
  keepBuild(join(home, "file", "builds"), idOf(1), mapOf("/p.js"), null);
  expect(buildOf(null, "pump-7", "")).toBe(null);
});

it("shows a path below the present folder as the user would type it", () => {
  expect(shownPath(join(process.cwd(), "src", "pump.js"))).toBe(join("src", "pump.js"));
  expect(shownPath("/elsewhere/pump.js")).toBe("/elsewhere/pump.js");
});
