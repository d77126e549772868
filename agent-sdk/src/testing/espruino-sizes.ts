/**
 * What the Espruino build costs: bytes of its file; and on a real engine, variables of an agent
 * that is online, that holds two sessions, and at the peak of a call of 256 bytes, and milliseconds
 * for such a call. The engine talks to a minimal relay over a real socket, with clients' envelopes
 * in the form that a real relay forwards.
 *
 * budgets.ts compares it with the limits; espruino-sizes.test.ts tests that the build keeps them.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { makeToken } from "@blindrelay/protocol";
import { type AeadVersion, jsonBytes, type Version } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { WebSocketServer } from "ws";
import { LOAD } from "../../build/boot.ts";
import { buildEspruino } from "../../build/espruino.ts";
import { Engine, type EngineProcess } from "../engines/espruino-process.ts";
import { cpuMs } from "./cpu-ms.ts";

export interface EspruinoSizes {
  /** The interpreter alone, with this measurement in it. */
  readonly empty: number;
  /** With the file loaded, as at power-up. */
  readonly loaded: number;
  readonly online: number;
  readonly twoSessions: number;
  /** During the conversions to and from base64, where the stack is deepest. */
  readonly peak: number;
  /** Processor time of the engine, for a call of so many bytes that is answered with as many. */
  readonly msPerCall: { readonly [bytes: number]: number };
}

const AGENT_ID = "sizes";
const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32).fill(1));
/** The figures that have budgets. */
export const CALL_BYTES = 256;

const requestOf = (id: number, bytes: number): unknown => {
  const request = { jsonrpc: "2.0", id, method: "echo", params: { x: "" } };
  request.params.x = "x".repeat(bytes - JSON.stringify(request).length);
  return request;
};

const SCRIPT = `
  var peak = 0, sampling = false, usage = () => process.memory().usage;
  var encode = btoa, decode = atob;
  var sample = () => { if (sampling) peak = Math.max(peak, usage()); };
  global.btoa = (x) => { sample(); return encode(x); };
  global.atob = (x) => { sample(); return decode(x); };
  var report = [usage()];
  ${LOAD}
  var br = require("blindrelay");
  report.push(usage());
  br.start((agent) => { agent.handle("echo", (params) => params); });
  var watch = setInterval(() => {
    if (br.status().state !== "online") return;
    clearInterval(watch);
    tell(report.concat([usage()]));
  }, 20);
`;

/** The relay and the clients behind it, for one agent. */
class Rig {
  readonly server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  private readonly sessions: ClientSession[] = [];
  private link: FakeLink | null = null;
  private calls = 9;
  private answered: () => void = () => {};

  constructor() {
    const relay = new FakeRelay({
      auth: (link) => link.accept(makeToken("session", new Uint8Array(32))),
      packet: (_link, { text }) => {
        for (const session of this.sessions) this.carry(session.receive(text, 0));
      },
    });
    this.server.on("connection", (socket) => {
      const link = relay.attach(socket);
      this.link = link;
      socket.on("message", (data) => link.receive(String(data)));
    });
  }

  /** Opens a session and waits for its first answer. */
  async open(version: Version): Promise<ClientSession> {
    const session = new ClientSession({
      suite: nodeSuite(),
      random: (length) => crypto.getRandomValues(new Uint8Array(length)),
      agentId: AGENT_ID,
      agentToken: AGENT_TOKEN,
      version,
      timings: DEFAULT_CLIENT_TIMINGS,
    });
    this.sessions.push(session);
    const opened = this.nextAnswer();
    this.carry(session.open(0));
    await opened;
    return session;
  }

  async call(session: ClientSession, bytes: number): Promise<void> {
    this.calls++;
    const packet = session.seal(jsonBytes(requestOf(this.calls, bytes)));
    if (packet === null) throw new Error("the session is not open");
    const answered = this.nextAnswer();
    this.send(packet);
    await answered;
  }

  private nextAnswer(): Promise<void> {
    return new Promise((resolve) => {
      this.answered = resolve;
    });
  }

  private carry(effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.send(effect.text);
      if (effect.kind === "message" || effect.kind === "opened") this.answered();
    }
  }

  private send(packet: string): void {
    this.link?.deliverEnveloped(packet, AGENT_ID, "r-0123456789");
  }
}

const usageNow = async (life: EngineProcess): Promise<[number, number]> => {
  life.type("tell([usage(), peak])");
  return life.told<[number, number]>();
};

/** `binary`: an Espruino. `calls`: how many are timed for each size in `bytes`. */
export const measureEspruino = async (
  binary: string,
  version: AeadVersion,
  calls: number,
  bytes: readonly number[] = [CALL_BYTES],
): Promise<EspruinoSizes> => {
  const engine = new Engine(binary);
  const rig = new Rig();
  try {
    await once(rig.server, "listening");
    await engine.install("blindrelay", buildEspruino(version).stored);
    const config = {
      url: `ws://127.0.0.1:${(rig.server.address() as AddressInfo).port}/wss`,
      agent_id: AGENT_ID,
      relay_token: makeToken("agent", new Uint8Array(32).fill(2)),
      agent_token: AGENT_TOKEN,
      v: version,
    };
    await engine.install("blindrelay.json", JSON.stringify(config));
    await engine.ask('require("blindrelay").provision(); tell(1);');
    const life = engine.start(SCRIPT);
    const [empty, loaded, online] = await life.told<[number, number, number]>();
    const sessions = [await rig.open(version), await rig.open(version)];
    for (const session of sessions) await rig.call(session, CALL_BYTES);
    const [twoSessions] = await usageNow(life);
    const msPerCall: { [bytes: number]: number } = {};
    for (const size of bytes) {
      const before = cpuMs(life.pid); // without samples, as they take time
      for (let i = 0; i < calls; i++) await rig.call(sessions[i & 1] as ClientSession, size);
      msPerCall[size] = (cpuMs(life.pid) - before) / calls;
    }
    life.type("sampling = true; tell(1)");
    await life.told();
    await rig.call(sessions[0] as ClientSession, CALL_BYTES);
    const [, peak] = await usageNow(life);
    return { empty, loaded, online, twoSessions, peak, msPerCall };
  } finally {
    await engine.close();
    for (const client of rig.server.clients) client.terminate();
    rig.server.close();
  }
};
