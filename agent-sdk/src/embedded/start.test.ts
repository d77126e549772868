/** A small device's start, on ports in memory. */
import { makeToken } from "@blindrelay/protocol";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { encodeEnvelope } from "@blindrelay/protocol/wire";
import { expect, it } from "vitest";
import {
  ManualTimer,
  MemoryStorage,
  memoryNetwork,
  type RelayEnd,
  seededRandom,
} from "../memory/index.ts";
import { provisionAgent, startAgent } from "./start.ts";

it("hears its relay and its clients also when a client has used up the names that it may keep", () => {
  const timer = new ManualTimer();
  const agentToken = makeToken("e2e", new Uint8Array(32).fill(3));
  const said: string[] = [];
  let end!: RelayEnd;
  const ports = {
    timer,
    link: memoryNetwork({
      timer,
      accept: (accepted) => {
        end = accepted;
        end.received = (text) => said.push(text);
        return true;
      },
    }),
    random: seededRandom(1),
    storage: new MemoryStorage(),
    suite: nodeSuite(),
    log: () => undefined,
  };
  provisionAgent(ports, agentToken);
  const core = startAgent(ports, {
    url: "ws://relay.test/wss",
    agentId: "pump",
    relayToken: makeToken("agent", new Uint8Array(32)),
    agentToken,
    runtime: "test",
    keptNames: 4096,
    program: () => undefined,
  });
  const say = (text: string): void => {
    end.send(text);
    timer.advance(0);
  };
  timer.advance(0);
  say('{"type":"auth_response","status":"authenticated","session_token":"sess_1"}');
  expect(core.link.state).toBe("online");
  for (let part = 0; part < 8; part++) {
    const names = Array.from({ length: 40 }, (_, n) => `"n${part * 40 + n}":0`);
    say(`{"v":"1","sid":"x","seq":0,"p":"",${names.join()}}`);
  }

  const suite = nodeSuite();
  const secrets = { agentId: "pump", agentToken, version: "1" as const };
  const client = new ClientSession({
    ...{ suite, random: seededRandom(2), timings: DEFAULT_CLIENT_TIMINGS },
    ...secrets,
  });
  const before = said.length;
  for (const effect of client.open(0))
    if (effect.kind === "send") say(encodeEnvelope(effect.text, "pump", "request-1"));
  expect(said.slice(before)).toEqual([expect.stringContaining('"request_id":"request-1"')]);

  say('{"type":"error","error":"back soon","code":"RESTARTING","reconnect_in":600}');
  end.close(1012, "");
  timer.advance(0);
  expect(core.link.status).toMatchObject({ code: "RESTARTING", waitMs: 600_000 });
  timer.advance(600_000);
  say(
    '{"type":"auth_response","status":"failed","error":"no","code":"LOCKED_OUT","retry_after":600}',
  );
  expect(core.link.status.waitMs).toBeGreaterThanOrEqual(600_000);
});
