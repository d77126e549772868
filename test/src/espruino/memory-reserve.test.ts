/** What a board does in place of running out of memory, on the built file. */
import { buildEspruino } from "@blindrelay/agent-sdk/testing/build/espruino";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";

const AMPLE = 4000;
/** Less than a message needs, and than an answer of 300 bytes. */
const LITTLE = 350;
/** In time for a call that is answered. */
const SHORT = { timeoutMs: 1000 };

const PROGRAM = `exports.program = (agent) => {
  agent.handle("echo", (params) => { console.log("echo"); return params; });
  agent.handle("fill", (params) => { console.log("fill"); return params; });
};`;

let fixture: RelayFixture;
let board: SubsetBoard;
let call: (method: string, options?: object) => Promise<unknown>;
let free = AMPLE;
let ran: string[] = [];

beforeAll(async () => {
  fixture = await openRelayFixture();
  const { url, agentId, relayToken, agentToken } = await fixture.addAgent("board");
  const config = {
    ...{ url: `${url.replace("http", "ws")}/wss`, agent_id: agentId, v: "2" },
    ...{ relay_token: relayToken, agent_token: agentToken },
  };
  const files = new Map([
    ["blindrelay", buildEspruino("2").stored],
    ["blindrelay.json", JSON.stringify(config)],
    ["program", PROGRAM],
  ]);
  new SubsetBoard(files).evaluate('require("blindrelay").provision()');
  board = new SubsetBoard(files, {
    free: () => free,
    print: (line) => {
      if (line === "echo" || line === "fill") ran.push(line);
      if (line === "fill") free = LITTLE;
    },
  });
  board.evaluate('require("blindrelay").start(require("program").program)');
  const agent = fixture.client.agent(agentId, agentToken, { version: "2" });
  const params = { x: "x".repeat(280) };
  call = (method, options) => agent.call(method, params, options);
  await call("echo", { waitForAgent: true, idempotent: true });
});
beforeEach(() => {
  free = AMPLE;
  ran = [];
});
afterAll(async () => {
  board.powerOff();
  await fixture.end();
});

it("leaves a message unread that it has too little memory for, and continues", async () => {
  free = LITTLE;
  await expect(call("echo", SHORT)).rejects.toThrow("before the deadline");
  expect(ran).toEqual([]);
  free = AMPLE;
  await call("echo");
  expect(ran).toEqual(["echo"]);
});

it("sends no answer that it has too little memory to seal, and continues", async () => {
  await expect(call("fill", SHORT)).rejects.toThrow("before the deadline");
  expect(ran).toEqual(["fill"]);
  free = AMPLE;
  await call("echo");
  expect(ran).toEqual(["fill", "echo"]);
});
