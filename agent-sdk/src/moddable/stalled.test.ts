/** A network that accepts nothing for a while must not fill a device's heap. */
import { makeToken } from "@blindrelay/protocol";
import { jsonBytes } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { expect, it } from "vitest";
import { MemoryPreference } from "../engines/preference.ts";
import { ManualTimer, seededRandom } from "../memory/index.ts";
import { fakeTime, valuesOf } from "../testing/moddable-sdk.ts";
import type { EcmaWebSocket, EcmaWebSocketOptions } from "./sdk.ts";
import { provisionOn, startOn } from "./start.ts";

const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32));
const AGENT_ID = "pump-7";
/** What a socket accepts while the network is well. */
const ROOM = 5000;

class Socket implements EcmaWebSocket {
  static last: Socket;
  readonly options: EcmaWebSocketOptions;
  isStalled = false;
  private heard = "";
  private part = "";
  private readonly written: string[] = [];

  constructor(options: EcmaWebSocketOptions) {
    this.options = options;
    Socket.last = this;
  }

  say(text: string): void {
    this.heard = text;
    this.options.onReadable(text.length, { more: false });
  }

  read(): ArrayBuffer {
    return new TextEncoder().encode(this.heard).buffer;
  }

  write(data: Uint8Array, options: { more?: boolean; opcode?: number }): number {
    this.part += new TextDecoder("latin1").decode(data);
    if (!options.more) {
      this.written.push(this.part);
      this.part = "";
    }
    return this.isStalled ? 0 : ROOM;
  }

  close(): void {}

  /** The messages since the last time. */
  taken(): string[] {
    return this.written.splice(0);
  }
}

/** An agent that is online, and a client with a session. */
const online = () => {
  const timer = new ManualTimer();
  const sdk = {
    Timer: {
      set: (fn: () => void, ms = 0) => timer.set(ms, fn),
      clear: (id: unknown) => timer.clear(id),
    },
    Time: fakeTime(() => timer.now()),
    values: valuesOf(new MemoryPreference()),
    print: () => {},
  };
  provisionOn(sdk, AGENT_TOKEN, {});
  const core = startOn(sdk, {
    url: "ws://relay.test/wss",
    agentId: AGENT_ID,
    relayToken: makeToken("agent", new Uint8Array(32)),
    agentToken: AGENT_TOKEN,
    program: (agent) => agent.handle("echo", (params) => params),
    network: { ws: { io: Socket } },
  });
  timer.advance(0);
  const socket = Socket.last;
  socket.options.onWritable(ROOM);
  socket.taken();
  const auth = {
    status: "authenticated",
    session_token: "s",
    expires_in: 86400,
    max_requests: 10000,
  };
  socket.say(JSON.stringify({ type: "auth_response", ...auth }));
  const session = new ClientSession({
    suite: nodeSuite(),
    random: seededRandom(1),
    agentId: AGENT_ID,
    agentToken: AGENT_TOKEN,
    version: "1",
    timings: DEFAULT_CLIENT_TIMINGS,
  });
  const told: string[] = [];
  const run = (effects: ClientEffect[]): void => {
    for (const effect of effects) {
      if (effect.kind === "send") socket.say(effect.text);
      if (effect.kind === "message") told.push(Buffer.from(effect.plaintext).toString());
    }
  };
  const pump = (): void => {
    for (let texts = socket.taken(); texts.length > 0; texts = socket.taken())
      for (const text of texts) if (text.includes('"sid"')) run(session.receive(text, timer.now()));
  };
  run(session.open(timer.now()));
  pump();
  const call = (id: number, params: unknown): void => {
    const request = { jsonrpc: "2.0", id, method: "echo", params };
    socket.say(session.seal(jsonBytes(request)) as string);
  };
  told.length = 0;
  return { agent: core.agent, core, socket, timer, told, pump, call };
};

it("queues no more events than the heap has room for, says how many are missing, and answers", () => {
  const { agent, core, socket, timer, told, pump, call } = online();
  socket.isStalled = true;
  let sent = 0;
  for (let n = 1; n <= 500; n++) sent += agent.emit("measured", { n, text: "x".repeat(100) });
  const perEvent = 350;
  expect(sent * perEvent).toBeLessThan(32_768);
  expect(sent).toBeGreaterThan(20);
  call(1, ["asked"]);
  timer.advance(1000);
  socket.isStalled = false;
  socket.options.onWritable(ROOM);
  timer.advance(1000);
  pump();
  expect(told.filter((text) => text.includes("measured"))).toHaveLength(sent);
  expect(told.find((text) => text.includes("system.lost"))).toContain(`"events":${500 - sent}`);
  expect(told.at(-1)).toBe('{"jsonrpc":"2.0","id":1,"result":["asked"]}');
  expect(core.link.state).toBe("online");
});
