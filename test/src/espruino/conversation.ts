/**
 * One conversation with a board that runs the built Espruino file, whatever runs that: a device
 * program answers calls of a real client through a real relay, over a real socket, in both suites,
 * before and after a power cut. Only `system.info` differs between boards.
 */
import { fileURLToPath } from "node:url";
import { buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Client } from "@blindrelay/client-sdk/node";
import { KINDS, type Kind } from "@blindrelay/simulator/devices/kinds";
import { celsiusAt } from "@blindrelay/simulator/devices/sensor";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type Credentials, openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";

export interface ConversationBoard {
  /** Writes a file to Storage. */
  install(name: string, content: string): Promise<void>;
  /** Runs `require("blindrelay").provision()`. */
  provision(): Promise<void>;
  /** Starts the module in Storage called "program"; resolves when the board is online. */
  powerOn(): Promise<void>;
  powerOff(): Promise<void>;
  /** Powers off and erases everything. */
  end(): Promise<void>;
}

const program = (path: string): string =>
  buildProgram(fileURLToPath(new URL(path, import.meta.url))).code;
const counter = program("../xs/counter.ts");
const configOf = (credentials: Credentials, v: string): string =>
  JSON.stringify({
    url: `${credentials.url.replace("http", "ws")}/wss`,
    agent_id: credentials.agentId,
    relay_token: credentials.relayToken,
    agent_token: credentials.agentToken,
    v,
    name: "board",
  });

export interface ConversationOptions {
  /** The file for each packet version. */
  readonly sdk: { readonly [version in "1" | "2"]: string };
  /** With empty Storage. */
  makeBoard(): ConversationBoard;
  /** The expected system.info. */
  readonly runtime: RegExp;
  /** Omits what a board of 2,630 variables has no memory for (docs/espruino.md). */
  readonly small: boolean;
}

export const conversationTests = ({
  sdk,
  makeBoard,
  runtime,
  small,
}: ConversationOptions): void => {
  let fixture: RelayFixture;
  let board: ConversationBoard;
  let credentials: Credentials;

  beforeAll(async () => {
    fixture = await openRelayFixture();
  }, 60_000);
  afterAll(() => fixture.end());
  afterEach(() => board.end());

  const prepare = async (code: string, v: "1" | "2"): Promise<void> => {
    board = makeBoard();
    credentials = await fixture.addAgent("board");
    await board.install("blindrelay", sdk[v]);
    await board.install("blindrelay.json", configOf(credentials, v));
    await board.install("program", code);
    await board.provision();
    await board.powerOn();
  };
  const agentOf = (client: Client, version: "1" | "2") =>
    client.agent(credentials.agentId, credentials.agentToken, { version });

  it.skipIf(small).each(["1", "2"] as const)(
    "answers calls sealed with suite %s",
    async (version) => {
      await prepare(counter, version);
      const agent = agentOf(fixture.client, version);
      const params = { text: "grüße 中文 🚰", n: [0.5, 1, -3, 12345678901] };
      expect(await agent.call("do", params)).toEqual({ times: 1, with: params });
      expect(await agent.call("later")).toEqual({ late: true });
      await expect(agent.call("fail")).rejects.toMatchObject({ code: "REMOTE" });
      await expect(agent.call("nothing")).rejects.toMatchObject({ remote: { code: -32601 } });
      expect(await agent.call("system.info")).toMatchObject({
        runtime: expect.stringMatching(runtime),
        name: "board",
      });
      const many = Array.from({ length: 5 }, (_, i) => agent.call("do", { i }));
      expect(await Promise.all(many)).toMatchObject(many.map((_, i) => ({ with: { i } })));
    },
  );

  it("serves two people at once, and sends events to both", async () => {
    await prepare(counter, "2");
    const second = await fixture.connect();
    const heard: unknown[] = [];
    const a = agentOf(fixture.client, "2");
    const b = agentOf(second, "2");
    b.on("event", (event, data) => heard.push([event, data]));
    await b.call("done");
    expect(await a.call("do", { x: "y".repeat(200) })).toMatchObject({ times: 1 });
    expect(await b.call("do", { x: "z".repeat(200) })).toMatchObject({ times: 2 });
    expect(heard).toEqual([
      ["done", { times: 1 }],
      ["done", { times: 2 }],
    ]);
    second.close();
  });

  it("reconnects after a power cut, and refuses to start without a boot count", async () => {
    await prepare(counter, "2");
    const agent = agentOf(fixture.client, "2");
    expect(await agent.call("do")).toMatchObject({ times: 1 });
    await board.powerOff();
    await board.powerOn();
    const patient = { idempotent: true, timeoutMs: 15_000 };
    expect(await agent.call("done", {}, patient)).toEqual({ times: 0 });
    await board.powerOff();
    await expect(board.provision()).rejects.toThrow("never used here");
    await board.install("boot.0", "torn");
    await board.install("boot.1", "too");
    await expect(board.powerOn()).rejects.toThrow("boot count is not readable");
  });

  it("ends the link at a message over its limit, and reconnects", async () => {
    await prepare(counter, "2");
    const agent = agentOf(fixture.client, "2");
    const tooLong = agent.call("do", { x: "y".repeat(6000) }, { timeoutMs: 2000 });
    await expect(tooLong).rejects.toMatchObject({ name: "CallError" });
    const patient = { idempotent: true, timeoutMs: 20_000 };
    expect(await agent.call("done", {}, patient)).toEqual({ times: 0 });
  });

  it("runs the simulator's valve unchanged, and answers correctly", async () => {
    const { interview } = KINDS.find(({ name }) => name === "valve") as Kind;
    await prepare(program("../../../simulator/src/devices/valve.ts"), "2");
    const questions = interview("board");
    for (let i = 0; i < 6; i++) {
      const { method, params, right } = questions.ask();
      expect(right(await agentOf(fixture.client, "2").call(method, params)), method).toBe(true);
    }
    const bad = agentOf(fixture.client, "2").call("valve.open", { percent: 101 });
    await expect(bad).rejects.toMatchObject({ code: "REMOTE" });
  });

  it("runs the simulator's sensor unchanged; Espruino writes 11 digits of a number", async () => {
    await prepare(program("../../../simulator/src/devices/sensor.ts"), "2");
    const agent = agentOf(fixture.client, "2");
    for (const reading of [1, 2, 3]) {
      const answer = await agent.call<{ celsius: number; reading: number }>("sensor.read");
      expect(answer.reading).toBe(reading);
      expect(answer.celsius).toBeCloseTo(celsiusAt("board", reading), 10);
    }
  });
};
