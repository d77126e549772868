/**
 * The same conversations with boards without a network, behind a bridge: the file for them in the
 * subset check, and on a real Espruino whose Serial1 is a terminal of `blindrelay bridge`.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Duplex, duplexPair, PassThrough } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { systemTimer, webSocketLinks } from "@blindrelay/agent-sdk/node";
import { SerialCarrier } from "@blindrelay/agent-sdk/serial";
import { buildEspruinoSerial } from "@blindrelay/agent-sdk/testing/build/espruino";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { SubsetUart } from "@blindrelay/agent-sdk/testing/espruino-uart";
import { MAX_MESSAGE_BYTES, makeToken } from "@blindrelay/protocol";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { describe, expect, it } from "vitest";
import { openRelayFixture } from "../xs/relay-fixture.ts";
import { bridgedBoard, onALine } from "./bridged.ts";
import { type ConversationBoard, conversationTests } from "./conversation.ts";
import { binary, boardBinary, ENGINES, EngineBoard, SMALL_ENGINES, whySkipped } from "./engine.ts";

const sdk = { "1": buildEspruinoSerial("1").stored, "2": buildEspruinoSerial("2").stored };
const budgets = JSON.parse(
  readFileSync(new URL("../../../agent-sdk/build/budgets.json", import.meta.url), "utf8"),
);

/** The bridge's end of a line, in this process. */
const carry = (line: Duplex, url: string): SerialCarrier => {
  const carrier: SerialCarrier = new SerialCarrier({
    write: (bytes) => line.write(bytes),
    ready: () => true,
    connect: (events) => webSocketLinks().connect(url, events),
    timer: systemTimer(),
    random: (length) => randomBytes(length),
    checksum: (bytes) => crc32(bytes),
    log: () => {},
    maxMessage: MAX_MESSAGE_BYTES,
    window: 2 * MAX_MESSAGE_BYTES,
  });
  line.on("data", (bytes: Buffer) => carrier.receive(bytes));
  return carrier;
};

const subsetBoard = (): ConversationBoard => {
  const files = new Map<string, string>();
  const [near, far] = duplexPair();
  let life: SubsetBoard | null = null;
  let carrier: SerialCarrier | null = null;
  const powerOff = async (): Promise<void> => {
    life?.powerOff();
    near.removeAllListeners("data");
    life = null;
  };
  const board: ConversationBoard = {
    async install(name, content) {
      files.set(name, content);
    },
    async provision() {
      new SubsetBoard(files).evaluate('require("blindrelay").provision()');
    },
    async powerOn() {
      const board = new SubsetBoard(files, { uart: new SubsetUart(near) });
      life = board;
      board.evaluate('require("blindrelay").start(require("program").program)');
      while (board.evaluate('require("blindrelay").status().state') !== "online") await wait(2);
    },
    powerOff,
    async end() {
      await powerOff();
      carrier?.end("the test is over");
    },
  };
  return onALine(board, {}, async ({ url }) => {
    carrier = carry(far, url);
  });
};

describe("subset check of the file for a UART", () => {
  conversationTests({
    sdk,
    makeBoard: subsetBoard,
    runtime: /^espruino 2v29 SUBSET$/,
    small: false,
  });

  it.each([
    ["on the line", "Serial1", null],
    ["nowhere yet, because USB may connect", "Limbo", null],
    ["elsewhere", "USB", "USB"],
  ])(
    "keeps a console that is %s off the line, before it prints anything there",
    (_how, at, then) => {
      const said: (string | null)[] = [];
      const line = new PassThrough();
      const uart = new SubsetUart(line);
      uart.console = at;
      line.on("data", () => said.push(uart.console));
      const config = {
        url: "ws://bridged",
        agent_id: "board",
        relay_token: makeToken("agent", randomBytes(32)),
        agent_token: makeToken("e2e", randomBytes(32)),
        v: "2",
        serial: { port: "Serial1", baud: 9600 },
      };
      const files = new Map([
        ["blindrelay", sdk["2"]],
        ["blindrelay.json", JSON.stringify(config)],
      ]);
      const board = new SubsetBoard(files, { uart });
      board.evaluate('require("blindrelay").provision(); require("blindrelay").start(() => {});');
      board.powerOff();
      expect(new Set(said)).toEqual(new Set([then]));
    },
  );
});

for (const { name, path, variable } of ENGINES) {
  const why = HAS_SOCAT ? whySkipped(path, variable) : " (skipped: there is no socat)";
  describe.skipIf(path === null || !HAS_SOCAT)(
    `on a real Espruino behind a bridge: ${name}${why}`,
    () =>
      conversationTests({
        sdk,
        makeBoard: () => bridgedBoard(new EngineBoard(path as string)),
        runtime: /^espruino 2v/,
        small: path !== binary,
      }),
  );
}

/** Measures where the stack is deepest, like testing/espruino-sizes.ts. */
const SAMPLES = `
  var peak = 0, usage = () => process.memory().usage;
  var sample = () => { peak = Math.max(peak, usage()); };
  var encode = btoa, decode = atob;
  global.btoa = (x) => { sample(); return encode(x); };
  global.atob = (x) => { sample(); return decode(x); };
`;

describe.each(SMALL_ENGINES)("with $name", ({ path, variable }) => {
  describe.skipIf(path === null || !HAS_SOCAT)(
    `behind a bridge${whySkipped(path, variable)}`,
    () => {
      it("uses no more of them than the limit of the file with WebSockets", async () => {
        const fixture = await openRelayFixture();
        const engine = new EngineBoard(path as string);
        const board = bridgedBoard(engine, SAMPLES);
        try {
          const { agentId, agentToken, relayToken, url } = await fixture.addAgent("board");
          const config = { agent_id: agentId, agent_token: agentToken, relay_token: relayToken };
          const relay = `${url.replace("http", "ws")}/wss`;
          await board.install("blindrelay", sdk["2"]);
          await board.install("blindrelay.json", JSON.stringify({ ...config, url: relay, v: "2" }));
          await board.install("program", "exports.program=(a)=>a.handle('echo',(params)=>params);");
          await board.provision();
          await board.powerOn();
          const second = await fixture.connect();
          for (const client of [fixture.client, second, fixture.client, second]) {
            const agent = client.agent(agentId, agentToken, { version: "2" });
            await agent.call("echo", { x: "x".repeat(196) });
          }
          engine.life?.type("tell([usage(), peak])");
          const [twoSessions, peak] = (await engine.life?.told<[number, number]>()) ?? [];
          console.log(`Espruino behind a bridge, 2,630 variables: ${twoSessions}, peak ${peak}`);
          const { variables, variables32 } = budgets.espruino;
          const limits = path === boardBinary ? variables32 : variables;
          expect(twoSessions).toBeLessThanOrEqual(limits.twoSessions);
          expect(peak).toBeLessThanOrEqual(limits.peak);
          expect(peak).toBeGreaterThan(limits.peak / 2);
          second.close();
        } finally {
          await board.end();
          await fixture.end();
        }
      });
    },
  );
});
