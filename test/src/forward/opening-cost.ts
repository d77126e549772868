/**
 * By hand: `node test/src/forward/opening-cost.ts [2|3|4]`. What an opening and the first call
 * cost client and agent together under a packet version (3 by default), against version 1: both in
 * this process, over a relay in another one, in turns. CPU times vary with the machine; the ratio
 * does not.
 */
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { isVersion, type Version } from "@blindrelay/protocol/crypto";
import { Relay } from "../specification/relay.ts";

const AGENTS = 40;
const ROUNDS = 30;

interface Address {
  readonly url: string;
  readonly accountToken: string;
  readonly agents: readonly { readonly agentId: string; readonly relayToken: string }[];
}

const serve = async (): Promise<void> => {
  const relay = await new Relay().start();
  const admin = await relay.admin();
  const agents = [];
  for (let n = 0; n < 2 * AGENTS; n++) agents.push(await relay.device(admin));
  const address: Address = { url: relay.url, accountToken: admin.accountToken, agents };
  process.send?.(address);
  process.once("disconnect", () => void relay.close().then(() => process.exit()));
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] as number;

const measure = async (version: Version): Promise<void> => {
  const relay = fork(import.meta.filename, ["relay"]);
  const [address] = (await once(relay, "message")) as [Address];
  const { url, accountToken } = address;
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-cost-"));
  const made = address.agents.map((agent, n) => ({
    ...agent,
    version: n % 2 === 0 ? "1" : version,
    agentToken: makeToken("e2e", randomBytes(32)),
  }));
  const running = [];
  for (const { version: packetVersion, ...agent } of made) {
    const started = await startAgent({
      ...agent,
      url,
      packetVersion,
      stateDir: join(folder, agent.agentId),
      program: (device) => device.handle("echo", (params) => params),
      log: () => undefined,
    });
    await started.online();
    running.push(started);
  }
  const costs = new Map<string, number[]>([
    ["1", []],
    [version, []],
  ]);
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of round % 2 === 0 ? ["1", version] : [version, "1"]) {
      // Its sessions are new ones.
      const client = await connect({ url, accountToken });
      const before = process.cpuUsage();
      for (const agent of made) {
        if (agent.version !== one) continue;
        const options = { version: agent.version };
        await client.agent(agent.agentId, agent.agentToken, options).call("echo", { n: round });
      }
      const { user, system } = process.cpuUsage(before);
      // The first ones run before anything is compiled.
      if (round > 3) costs.get(one)?.push((user + system) / AGENTS);
      client.close();
    }
  }
  const [plain, other] = ["1", version].map((one) => median(costs.get(one) ?? []));
  const ratio = ((other as number) / (plain as number)).toFixed(2);
  console.log(`1: ${plain?.toFixed(0)} us, ${version}: ${other?.toFixed(0)} us, ratio ${ratio}`);
  for (const agent of running) await agent.stop();
  relay.disconnect();
  rmSync(folder, { recursive: true, force: true });
};

const [, , argument = "3"] = process.argv;
if (argument === "relay") await serve();
else if (isVersion(argument) && argument !== "1") await measure(argument);
else throw new Error("usage: node test/src/forward/opening-cost.ts [2|3|4]");
