import { expect, it } from "vitest";
import { AGENT_ID, AGENT_TOKEN, RELAY_TOKEN } from "../testing/world.ts";
import { type Credentials, credentialsProblem } from "./credentials.ts";

const VALID = { agentId: AGENT_ID, relayToken: RELAY_TOKEN, agentToken: AGENT_TOKEN };
const ID = "agentId: 1 to 64 of A-Z, a-z, 0-9, - and _";
const FIRMWARE = "firmwareVersion: 1 to 64 printable ASCII characters";
const FOREIGN = { foreignAgentToken: true };

it.each<[object, string | null]>([
  [{}, null],
  [{ agentId: "AZaz09-_" }, null],
  [{ agentId: "x".repeat(64) }, null],
  [{ agentId: "x".repeat(65) }, ID],
  [{ agentId: "" }, ID],
  [{ agentId: "a.b" }, ID],
  [{ agentId: 7 }, ID],
  [{ firmwareVersion: "1.4.0" }, null],
  [{ firmwareVersion: "" }, FIRMWARE],
  [{ version: "2" }, null],
  [{ version: "3", forward: {} }, null],
  [{ version: "3" }, 'packet version "3" needs X25519: use "1" or "2" here'],
  [{ relayToken: undefined }, "relayToken is missing"],
  [{ relayToken: AGENT_TOKEN }, expect.stringMatching(/^relayToken: /)],
  [{ agentToken: undefined }, "agentToken is missing"],
  [{ agentToken: RELAY_TOKEN }, expect.stringMatching(/^agentToken: /)],
  [{ agentToken: "x".repeat(32) }, expect.stringMatching(/^agentToken: /)],
  [{ agentToken: "x".repeat(32), ...FOREIGN }, null],
  [{ agentToken: "x".repeat(31), ...FOREIGN }, "agentToken: at least 32 characters"],
])("a configuration with %j has this problem: %j", (change, problem) => {
  expect(credentialsProblem({ ...VALID, ...change } as Credentials)).toEqual(problem);
});
