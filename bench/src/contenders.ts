/**
 * What is measured against each other: forwarders in processes of their own, with connected pairs
 * of a client and an agent.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { relayUrl } from "@blindrelay/client-sdk/node";
import {
  encodeAgentAuth,
  encodeClientAuth,
  encodeEnvelope,
  encodePacket,
} from "@blindrelay/protocol/wire";
import { logIn, makeAgents, startRelay, stopChild, watch } from "@blindrelay/simulator";
import { Peer } from "./peer.ts";

const PROBE = fileURLToPath(new URL("./probe.ts", import.meta.url));
const FORWARDER = fileURLToPath(new URL("./forwarder.ts", import.meta.url));
const STOP_GRACE_MS = 1_000;
/** Limits that would end a benchmark are out of its way; they are still counted. */
const UNLIMITED = [
  ...["--rate-per-second", "1000000", "--rate-burst", "1000000"],
  ...["--requests-per-minute", "10000000", "--requests-at-once", "32"],
  ...["--waiting-per-address", "1000000"],
];

/** Two ends of one session: what the client sends the agent gets, and the other way round. */
export interface Pair {
  sid: string;
  client: Peer;
  agent: Peer;
}

export interface Contender {
  readonly name: string;
  /** Microseconds of processor time used so far. */
  cpuUs(): Promise<number>;
  /** Connects `count` pairs, ready to send. */
  connectPairs(count: number): Promise<Pair[]>;
  stop(): Promise<void>;
}

/** The minimal forwarder on `ws`. */
export async function bareWs(name: string): Promise<Contender> {
  const child = watch(
    spawn(process.execPath, [FORWARDER], { stdio: ["ignore", "pipe", "inherit", "ipc"] }),
  );
  const [port] = await once(child.stdout as NonNullable<typeof child.stdout>, "data");
  const url = `ws://127.0.0.1:${String(port).trim()}/`;
  async function connectPair(): Promise<Pair> {
    const sid = drawSid();
    const [client, agent] = await Promise.all([Peer.connect(url), Peer.connect(url)]);
    await Promise.all([
      client.ask(JSON.stringify({ sid, side: "client" })),
      agent.ask(JSON.stringify({ sid, side: "agent" })),
    ]);
    return { sid, client, agent };
  }
  return {
    name,
    cpuUs: () => askCpu(child),
    connectPairs: (count) => Promise.all(Array.from({ length: count }, connectPair)),
    stop: () => stopChild(child, () => child.kill("SIGTERM"), STOP_GRACE_MS),
  };
}

/** Our relay, as an operator starts it, with a store in `folder`. */
export async function ourRelay(name: string, folder: string): Promise<Contender> {
  const { signal } = new AbortController();
  const relay = await startRelay(folder, signal, { flags: UNLIMITED, preload: PROBE });
  const url = relayUrl(relay.url);
  const { accessToken, accountToken } = await logIn(relay, signal);
  let made = 0;
  return {
    name,
    cpuUs: () => askCpu(relay.process),
    async connectPairs(count) {
      const nobody = (): void => {};
      const agents = await makeAgents(relay, accessToken, count, 0, signal, nobody, made + 1);
      made += count;
      return Promise.all(
        agents.map(async ({ id, relayToken }) => {
          const sid = drawSid();
          const [client, agent] = await Promise.all([Peer.connect(url), Peer.connect(url)]);
          await Promise.all([
            client.ask(encodeClientAuth(accountToken, false, false)),
            agent.ask(encodeAgentAuth(relayToken, false, id, "bench", null)),
          ]);
          // The envelope binds the sid; packets after it go bare (contract, section 3).
          const arrived = agent.next();
          const payload = JSON.stringify(encodePacket("1", sid, 0, ""));
          client.send(encodeEnvelope(payload, id, null));
          await arrived;
          return { sid, client, agent };
        }),
      );
    },
    stop: () => relay.stop(),
  };
}

function drawSid(): string {
  return randomBytes(16).toString("base64url");
}

async function askCpu(child: ChildProcess): Promise<number> {
  const answer = once(child, "message");
  child.send("cpu");
  const [cpuUs] = await answer;
  return cpuUs as number;
}
