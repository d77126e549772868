/** Mode `raw` without a port or a session: what a takeover does to the bytes. */

import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { toBase64 } from "@blindrelay/protocol/streams";
import { describe, expect, it } from "vitest";
import { ManualTimer, seededRandom } from "../memory/index.ts";
import { type Agent, systemTimer } from "../node/index.ts";
import type { TimerPort } from "../ports.ts";
import { NO_STATUS, type StatusLines } from "./port.ts";
import { RawLine, RawProgram } from "./raw.ts";
import { RawPort } from "./raw-port.ts";

type Part = Parameters<Agent["attach"]>[0];
type Handler = (params: unknown, context: { readonly sid: string }) => unknown;

const SID = "session";

const world = (timer: TimerPort = systemTimer()) => {
  const writes: { readonly text: string; readonly taken: () => void }[] = [];
  const state: { lines: StatusLines; readonly changes: unknown[] } = {
    lines: NO_STATUS,
    changes: [],
  };
  const handlers = new Map<string, Handler>();
  let part!: Part;
  const agent = {
    handle: (method: string, handler: Handler) => handlers.set(method, handler),
    emit: (event: string, data: object) => state.changes.push({ event, ...data }),
    attach: (attached: Part) => {
      part = attached;
      return { maxPlaintext: 16_384, send: () => true, heardAt: () => 0 };
    },
  };
  const port = {
    write: (bytes: Uint8Array) =>
      new Promise<void>((taken) => writes.push({ text: Buffer.from(bytes).toString(), taken })),
    pause: () => undefined,
    resume: () => undefined,
    configure: async () => undefined,
    control: async () => undefined,
    status: async () => state.lines,
    close: async () => undefined,
  };
  const line = new RawPort("tty", "first", { timer, random: seededRandom(1), date: () => "" });
  const raw = new RawLine(line, ["tty"], DEFAULT_SETTINGS, timer);
  const made = new RawProgram([raw]);
  made.program(agent as unknown as Agent);
  made.opened(raw, port);
  return {
    writes,
    state,
    open: (stream: number) => handlers.get("serial.write")?.({ stream }, { sid: SID }),
    say: (stream: number, text: string) =>
      part.receive("stream.data", { stream, data: toBase64(Buffer.from(text)) }, SID),
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
};

describe("mode raw", () => {
  it("tells status lines that the port comes to know only after it is open, and their changes", async () => {
    const timer = new ManualTimer();
    const { state, settled } = world(timer);
    const pass = async (ms: number): Promise<void> => {
      for (let at = 0; at < ms; at += 100) {
        await settled();
        timer.advance(100);
      }
      await settled();
    };
    await pass(2_000);
    expect(state.changes).toEqual([]);
    state.lines = { cts: true, dsr: false, dcd: false };
    await pass(2_000);
    state.lines = NO_STATUS;
    await pass(200);
    state.lines = { cts: true, dsr: false, dcd: false };
    await pass(2_000);
    state.lines = { cts: false, dsr: false, dcd: false };
    await pass(200);
    expect(state.changes).toEqual([
      { event: "serial.changed", port: "tty", cts: true, dsr: false, dcd: false },
      { event: "serial.changed", port: "tty", cts: false, dsr: false, dcd: false },
    ]);
  });

  it("does not mix a new writer's bytes with what the port still accepts from the previous one", async () => {
    const { writes, open, say, settled } = world();
    open(1);
    say(1, "old, under way");
    say(1, "old, waiting");
    await settled();
    open(2);
    say(2, "new");
    await settled();
    expect(writes.map(({ text }) => text)).toEqual(["old, under way"]);
    writes[0]?.taken();
    await settled();
    expect(writes.map(({ text }) => text)).toEqual(["old, under way", "new"]);
  });
});
