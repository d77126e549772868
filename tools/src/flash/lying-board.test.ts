/**
 * What answers on a port may be made to harm whoever plugs it in: whatever it says in the place of
 * one honest answer, nothing ends as a bug of ours, and no file of the machine is named by it.
 */
import {
  type BoardConfig,
  changeWifi,
  EspruinoRepl,
  flashEspruino,
  type Port,
  provisionBoard,
  pushKeyOf,
  REPL_LIMITS,
  readBoard,
  sdkFileName,
  sdkFileOf,
  toBoardProgram,
} from "@blindrelay/agent-sdk/board";
import { loadDialect } from "@blindrelay/agent-sdk/dialect";
import { makeToken } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { EspruinoDouble } from "../repl/testing/double.ts";
import { lineTo } from "../repl/testing/line.ts";
import { reportBoard } from "./board-report.ts";

const CONFIG: BoardConfig = {
  url: "ws://127.0.0.1:9/wss",
  agent_id: "pump-7",
  relay_token: makeToken("agent", new Uint8Array(32).fill(1)),
  agent_token: makeToken("e2e", new Uint8Array(32).fill(2)),
  v: "2",
  push_key: makeToken("push", new Uint8Array(32).fill(3)),
  wifi: { ssid: "hall 7", password: "a long password" },
};
const OF_PATHS = ["/../../../../secret", "..", "x?", "1#", "\u001b[2J", "a\nb"];

const doubles: EspruinoDouble[] = [];
afterEach(() => {
  for (const double of doubles.splice(0)) double.end();
});

/** A port whose answers that `lie` changes are others; it gets their number and the honest text. */
const lying = (port: Port, lie: (number: number, text: string) => string): Port => {
  let number = 0;
  let held = "";
  const liar: Port = {
    name: port.name,
    events: { received: () => undefined, closed: () => undefined },
    write: (bytes) => port.write(bytes),
    close: () => port.close(),
  };
  port.events = {
    received: (bytes) => {
      const lines = (held + Buffer.from(bytes).toString("latin1")).split(/(?<=\n)/);
      held = lines.at(-1)?.endsWith("\n") === false ? (lines.pop() ?? "") : "";
      const said = lines.map((line) =>
        line.replace(/(<br:\d+:)ok>(.*?)(?=\r?\n)/, (_, mark, text) => {
          const said = lie(number++, text);
          return said.startsWith("no>") ? mark + said : `${mark}ok>${said}`;
        }),
      );
      liar.events.received(Buffer.from(said.join(""), "latin1"));
    },
    closed: (reason) => liar.events.closed(reason),
  };
  return liar;
};

/** A provisioned board of which `lie` changes the answers after the first, about nothing. */
const plugIn = async (lie: (number: number, text: string) => string): Promise<EspruinoRepl> => {
  const double = new EspruinoDouble({ bufferBytes: 8_192, xoffBytes: 8_000 });
  doubles.push(double);
  double.storage.write("blindrelay.json", JSON.stringify(CONFIG));
  const port = lying(lineTo(double), (n, text) => (n === 0 ? text : lie(n - 1, text)));
  const limits = { ...REPL_LIMITS, settleMs: 10, answerMs: 5_000, attachMs: 2_000 };
  const board = new EspruinoRepl(port, limits);
  await board.attach(true);
  return board;
};

/** An answer with another value, or one of its members. */
const lieAbout = (value: unknown, place: number, text: string): string => {
  const honest: unknown = text === "undefined" ? undefined : JSON.parse(text);
  if (typeof honest !== "object" || honest === null || place === 0) return JSON.stringify(value);
  const names = Object.keys(honest);
  const changed = Array.isArray(honest) ? [...honest] : { ...honest };
  Object.assign(changed, { [names[place % names.length] ?? "more"]: value });
  return JSON.stringify(changed);
};

const VALUES = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    0,
    -1,
    1e300,
    "",
    [],
    {},
    { toString: 1, valueOf: 1 },
    ...OF_PATHS,
  ),
  fc.jsonValue({ maxDepth: 1 }),
);

const DIALECT = await loadDialect();
const SOURCE = 'export default (agent) => { agent.handle("echo", (p) => print(p)); };';
const TASKS: { readonly [name: string]: (board: EspruinoRepl) => Promise<unknown> } = {
  provision: (board) => provisionBoard(board, nodeSuite(), CONFIG),
  "change the Wi-Fi": (board) => changeWifi(board, { ssid: "x", password: "a long password" }),
  "keep the push key": pushKeyOf,
  flash: (board) =>
    flashEspruino(
      board,
      {
        sdk: "exports.boot=function(){};",
        program: async () => toBoardProgram(DIALECT, "program.js", SOURCE, false),
        dialect: DIALECT,
        firmwareVersion: undefined,
        save: true,
        dryRun: true,
        slowCrypto: false,
      },
      () => undefined,
      () => undefined,
    ),
};

it("a board names no file of this machine", async () => {
  const lie = fc.record({ place: fc.nat(20), value: VALUES });
  const names: string[] = [];
  await fc.assert(
    fc.asyncProperty(lie, async ({ place, value }) => {
      const board = await plugIn((_, text) => lieAbout(value, place, text));
      const found = await readBoard(board).catch((error) => {
        if (!(error instanceof Failure)) throw error;
        return null;
      });
      if (found === null) return;
      names.push(sdkFileName(sdkFileOf(found)));
      expect(names.at(-1)).toMatch(/^blindrelay(-(wifi|serial|push|rekey))*-(1|2|any)\.bin$/);
      expect(`${found.version}${found.board}${found.agentId}`).toMatch(/^[ -~]+$/);
    }),
    {
      numRuns: 100,
      examples: OF_PATHS.map((value): [{ place: number; value: unknown }] => [
        { place: 12, value },
      ]),
    },
  );
  expect(names.length).toBeGreaterThan(20);
});

it.each(Object.entries(TASKS))(
  "whatever a board answers, it is its failure: %s",
  async (_, task) => {
    const lie = fc.record({ at: fc.nat(8), place: fc.nat(20), value: VALUES });
    await task(await plugIn((_n, text) => text));
    await fc.assert(
      fc.asyncProperty(lie, async ({ at, place, value }) => {
        const board = await plugIn((n, text) => (n === at ? lieAbout(value, place, text) : text));
        await task(board).catch((error) => {
          if (!(error instanceof Failure)) throw error;
        });
      }),
      { numRuns: 25 },
    );
  },
);

it.each(Object.entries(TASKS))("what a board throws is its failure: %s", async (_, task) => {
  for (let at = 0; at < 9; at++) {
    // Three times: once may be a line that arrived damaged.
    const board = await plugIn((n, text) => (n >= at ? "no>out of memory" : text));
    await task(board).catch((error) => {
      expect(error).toBeInstanceOf(Failure);
      expect(error.message).toContain("out of memory");
    });
  }
});

it("a board that says what it is given has none of its secrets told", async () => {
  const said: string[] = [];
  const board = await plugIn((_, text) => (said.length === 0 ? text : `no>${said.join(" ")}`));
  const { write } = board.port;
  board.port.write = (bytes) => {
    const typed = Buffer.from(bytes).toString("latin1");
    said.push(...(typed.match(/[\w+/=-]{20,}/g) ?? []));
    return write(bytes);
  };
  const error = await provisionBoard(board, nodeSuite(), CONFIG).catch((reason: Error) => reason);
  expect(said.length).toBeGreaterThan(0);
  const { message } = error as Error;
  for (const text of said) expect(message).not.toContain(text);
});

it("a secret in a damaged answer is not told, not even its first half", async () => {
  const { agent_token } = CONFIG;
  const board = await plugIn(() => `{"name":"Pump in hall seven","agent_token":"${agent_token}`);
  await expect(board.evaluate("1")).rejects.toThrow('"agent_token":"…');
});

it("a report says what a board answers wrong", async () => {
  const board = await plugIn((_, text) =>
    /^[[{]/.test(text) && !text.includes('"modules"') ? "null" : text,
  );
  const rows = await reportBoard(board, new Promise<never>(() => undefined));
  expect(rows.join("\n")).toContain("WRONG: null");
});
