/** A board that is set up while somebody pulls its cable at any byte. */
import {
  type BoardConfig,
  BoardFailure,
  EspruinoRepl,
  type Port,
  REPL_LIMITS,
  SetUpFailure,
  type Starts,
  setUpBoard,
  toBoardProgram,
} from "@blindrelay/agent-sdk/board";
import { loadDialect } from "@blindrelay/agent-sdk/dialect";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterEach, expect, it } from "vitest";
import { EspruinoDouble } from "../repl/testing/double.ts";
import { lineTo } from "../repl/testing/line.ts";
import type { DoubleOptions } from "../repl/testing/options.ts";

const CUTS = Number(process.env.SET_UP_CUTS ?? 4);
/** Not run: what matters is which files are there. */
const SDK = `exports.boot=function(){};"${"x".repeat(3_000)}"`;
const OLD = 'print("the old program")';
const CONFIG: BoardConfig = {
  url: "ws://127.0.0.1:9/wss",
  agent_id: "pump-7",
  relay_token: makeToken("agent", new Uint8Array(32).fill(1)),
  agent_token: makeToken("e2e", new Uint8Array(32).fill(2)),
  v: "2",
  name: "Pümp",
  wifi: { ssid: "hall 7", password: "a long password" },
};

const doubles: EspruinoDouble[] = [];
afterEach(() => {
  for (const double of doubles.splice(0)) double.end();
});

const plugIn = (options: Partial<DoubleOptions> = {}): EspruinoDouble => {
  const double = new EspruinoDouble(options);
  doubles.push(double);
  return double;
};

/** The cable is pulled after this many bytes, in both directions. */
const cut = (port: Port, after: number): Port & { readonly count: number } => {
  let count = 0;
  const take = (bytes: Uint8Array): Uint8Array => {
    const left = Math.max(0, after - count);
    const wasThere = count <= after;
    count += bytes.length;
    if (wasThere && count > after) setTimeout(() => pulled.events.closed("unplugged"));
    return bytes.subarray(0, left);
  };
  const pulled = {
    name: port.name,
    events: { received: () => undefined, closed: () => undefined } as Port["events"],
    get count() {
      return count;
    },
    write: async (bytes: Uint8Array) => {
      const rest = take(bytes);
      if (rest.length > 0) await port.write(rest);
      if (rest.length < bytes.length) throw new BoardFailure("gone", "unplugged");
    },
    close: () => port.close(),
  };
  port.events = {
    received: (bytes) => {
      const rest = take(bytes);
      if (rest.length > 0) pulled.events.received(rest);
    },
    closed: (reason) => pulled.events.closed(reason),
  };
  return pulled;
};

/** What it starts after a set-up that ended by itself or by the cable, and its bytes. */
const setUp = async (double: EspruinoDouble, after = Number.POSITIVE_INFINITY) => {
  const port = cut(lineTo(double), after);
  const board = new EspruinoRepl(port, { ...REPL_LIMITS, settleMs: 10 });
  const dialect = await loadDialect();
  const source = 'export default (agent) => { agent.handle("echo", (p) => p); };';
  let starts: Starts = "new";
  let cause: unknown = null;
  try {
    await board.attach(true);
    await setUpBoard(board, {
      config: async () => CONFIG,
      suite: nodeSuite(),
      sdk: SDK,
      dialect,
      program: async () => toBoardProgram(dialect, "program.js", source, false),
      progress: () => undefined,
      notice: () => undefined,
    });
  } catch (error) {
    if (!(error instanceof SetUpFailure)) throw error;
    ({ starts, cause } = error);
  }
  return { starts, cause, count: port.count };
};

it("a board that was never used gets everything, what starts it last", async () => {
  const double = plugIn();
  expect(await setUp(double)).toMatchObject({ starts: "new" });
  expect(double.storage.written.slice(-3)).toEqual(["blindrelay", "program", ".bootcde"]);
  const config = JSON.parse(double.storage.read("blindrelay.json") ?? "");
  expect(config).toEqual(CONFIG);
});

it("a board that lacks something, or room, keeps what it has", async () => {
  for (const [options, reason] of [
    [{ sha256: false }, "lacks"],
    [{ storageBytes: 3_000 }, "full"],
  ] as const) {
    const double = plugIn(options);
    double.storage.write(".bootcde", OLD);
    const { starts, cause } = await setUp(double);
    expect([starts, (cause as BoardFailure).reason]).toEqual(["old", reason]);
    expect(double.storage.list()).toEqual([".bootcde"]);
  }
});

it("pulled at any byte, it starts the old program, none or the new one, and which is told", async () => {
  const first = plugIn();
  const attached = 500;
  const { count } = await setUp(first);
  const seen = new Set<Starts>();
  for (let i = 0; i < CUTS; i++) {
    const after = attached + Math.floor(((i + Math.random()) / CUTS) * (count - attached));
    const double = plugIn();
    double.storage.write(".bootcde", OLD);
    const { starts, cause } = await setUp(double, after).catch(() => ({
      starts: "old" as const, // before it was attached
      cause: new BoardFailure("gone", ""),
    }));
    const file = double.storage.read(".bootcde");
    const isNew = file !== undefined && /^exports=.*\$br\.boot\(\)$/.test(file);
    const held = file === undefined ? "none" : file === OLD ? "old" : isNew ? "new" : "broken";
    expect({ after, starts: starts.split(" or ") }).toMatchObject({
      starts: expect.arrayContaining([held]),
    });
    if (starts !== "new") expect((cause as BoardFailure).reason).toBe("gone");
    seen.add(starts);
    double.end();
  }
  expect([...seen]).toEqual(expect.arrayContaining(["none"]));
});
