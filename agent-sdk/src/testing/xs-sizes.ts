/**
 * What the Moddable build costs, measured in the real engine: bytes of its modules, the heap of an
 * agent that is online with two sessions, and the interpreter's steps for a call of 256 bytes. The
 * engine is a 64-bit one; heap is converted to that of a 32-bit board (a slot of 16 bytes instead
 * of 32). There bytecode and preloaded modules are in flash, so `loaded` exceeds what a board's RAM
 * holds.
 *
 * budgets.ts compares it with the limits; xs-sizes.test.ts tests that the build keeps them.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { jsonBytes } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { deviceScript } from "../../build/engine-scripts.ts";
import { buildXsModules, moduleBytes, type XsModules } from "../../build/xs.ts";
import { linkWire } from "../engines/link-wire.ts";
import { MemoryPreference } from "../engines/preference.ts";
import { XsDevice } from "../engines/xs-device.ts";
import { XsWorker } from "../engines/xs-worker.ts";
import { ManualTimer, memoryNetwork, seededRandom } from "../memory/index.ts";
import { cpuMs } from "./cpu-ms.ts";

export interface XsSizes {
  /** Bytes of each module. */
  readonly modules: { readonly [name in keyof XsModules]: number };
  /** Bytes of heap for loading: modules, their bytecode, and the test's stand-ins. */
  readonly loaded: number;
  /** Bytes of heap that a running agent adds: online, two sessions held. */
  readonly agent: number;
  /** Steps for one call of 256 bytes and its answer, sealed in JavaScript only (version "1"). */
  readonly computePerCall: number;
  /** Slots that such a call allocates before garbage is collected. */
  readonly slotsPerCall: number;
  /** Processor time of the engine, for such a call. */
  readonly msPerCall: number;
}

const MAX_COMPUTE = 1e9;
const BOARD_SLOT_BYTES = 16;
const ENGINE_SLOT_BYTES = 32;
const AGENT_ID = "sizes";
const CALL_BYTES = 256;
const STEP_MS = 1000;
const TIMED_CALLS = 20;

/** Live chunks and slots of a machine, from its snapshot's atoms (length, name, content). */
const heapOf = (worker: XsWorker): number => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-heap-"));
  const path = join(folder, "heap");
  worker.snapshot(path);
  const bytes = readFileSync(path);
  rmSync(folder, { recursive: true });
  let heap = 0;
  for (let at = 8; at + 8 <= bytes.length; at += bytes.readUInt32BE(at)) {
    const size = bytes.readUInt32BE(at) - 8;
    const name = bytes.toString("latin1", at + 4, at + 8);
    if (name === "BLOC") heap += size;
    if (name === "HEAP") heap += (size / ENGINE_SLOT_BYTES) * BOARD_SLOT_BYTES;
  }
  return Math.round(heap);
};

/** An agent in XS on a relay in memory, and the clients' ends of its sessions. */
class Bench {
  readonly device: XsDevice;
  private readonly timer = new ManualTimer();
  private readonly fake = new FakeRelay({
    auth: (link) => link.accept(makeToken("session", new Uint8Array(32))),
    packet: (_link, { text }) => {
      for (const session of this.sessions) this.carry(session.receive(text, this.timer.now()));
    },
  });
  private relay: FakeLink | null = null;
  private readonly sessions: ClientSession[] = [];
  private readonly agentToken = makeToken("e2e", new Uint8Array(32).fill(5));
  answers = 0;

  constructor(engine: string, script: string) {
    const network = memoryNetwork({
      timer: this.timer,
      accept: (relay) => {
        const link = this.fake.attach(relay);
        this.relay = link;
        relay.received = (text) => link.receive(text);
        return true;
      },
    });
    this.device = new XsDevice({
      engine,
      script,
      timer: this.timer,
      connect: linkWire(network),
      preference: new MemoryPreference(),
      maxCompute: MAX_COMPUTE,
    });
  }

  start(): void {
    this.device.provision(this.agentToken);
    const relayToken = makeToken("agent", new Uint8Array(32));
    const who = { agentId: AGENT_ID, relayToken, agentToken: this.agentToken };
    this.device.start({ ...who, url: "ws://relay.test/wss", packetVersion: "1" }, "program");
    this.timer.advance(STEP_MS);
  }

  openSession(): void {
    const session = new ClientSession({
      suite: nodeSuite(),
      random: seededRandom(this.sessions.length + 1),
      agentId: AGENT_ID,
      agentToken: this.agentToken,
      version: "1",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
    this.sessions.push(session);
    this.carry(session.open(this.timer.now()));
    this.timer.advance(STEP_MS);
    if (session.state !== "open") throw new Error(`the session is ${session.state}`);
  }

  /** One call with CALL_BYTES of plaintext, and its answer. */
  call(): void {
    const call = { jsonrpc: "2.0", id: 2, method: "echo", params: [""] };
    call.params = ["x".repeat(CALL_BYTES - JSON.stringify(call).length)];
    const text = this.sessions[0]?.seal(jsonBytes(call));
    if (text === null || text === undefined) throw new Error("the call cannot be sealed");
    this.relay?.say(text);
    const before = this.answers;
    this.timer.advance(STEP_MS);
    if (this.answers === before) throw new Error("the call was not answered");
  }

  private carry(effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.relay?.say(effect.text);
      if (effect.kind === "message") this.answers++;
    }
  }
}

/** `engine`: from findXsEngine. */
export const measureXs = async (engine: string): Promise<XsSizes> => {
  const modules = await buildXsModules();
  const program = resolve(import.meta.dirname, "../../examples/moddable/program.js");
  const script = await deviceScript(modules, { program }, false);
  const empty = new XsWorker({ engine, maxCompute: MAX_COMPUTE });
  empty.evaluate("0");
  const bare = heapOf(empty);
  await empty.close();

  const bench = new Bench(engine, script);
  const { device } = bench;
  const loaded = heapOf(device.worker);
  bench.start();
  bench.openSession();
  bench.openSession();
  bench.call();
  const running = heapOf(device.worker);
  device.held();
  const slots = device.meter.currentHeapCount;
  device.spent = 0;
  bench.call();
  const spent = device.spent;
  const used = device.meter.currentHeapCount - slots;
  const before = cpuMs(device.worker.pid);
  for (let i = 0; i < TIMED_CALLS; i++) bench.call();
  const msPerCall = (cpuMs(device.worker.pid) - before) / TIMED_CALLS;
  const sizes = {
    modules: moduleBytes(modules),
    loaded: loaded - bare,
    agent: running - loaded,
    computePerCall: spent,
    slotsPerCall: used,
    msPerCall,
  };
  await device.end();
  return sizes;
};
