/**
 * A relay on real sockets with many agents in this process, which count how often their handlers
 * ran, and the home of a `blindrelay` command that has all their secrets.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentCore, type Program, provisionBootCount, raiseBootCount } from "@blindrelay/agent-sdk";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { systemTimer, webSocketLinks } from "@blindrelay/agent-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { initStore } from "@blindrelay/relay-server";
import { CLI, RELAY, Running } from "../cli/processes.ts";

const PASSWORD = "a long password of one's own";
/** Requests and logins in progress at the same time. */
const AT_ONCE = 8;

/** Does `work` for 0 to `count` - 1, some at once. */
const each = async (count: number, work: (n: number) => Promise<void>): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
};

/** What an agent needs to log in and to be called. */
interface Identity {
  readonly url: string;
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
}

export class FleetWorld {
  readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-fleet-"));
  /** How often each agent has run a handler. */
  readonly runs = new Map<string, number>();
  readonly ids: string[] = [];
  private readonly cores: AgentCore[] = [];
  private relay: Running | null = null;

  /** `program`: of agent `n`; `ran` counts a run of it. */
  async open(count: number, program: (n: number, ran: () => void) => Program): Promise<void> {
    const data = join(this.folder, "relay");
    await initStore({ data, username: "ada", password: PASSWORD, totp: false });
    // Its sockets are not this process's.
    this.relay = new Running(
      RELAY,
      ["start", "--data", data, "--port", "0", "--metrics-port", "0"],
      { BLINDRELAY_REQUESTS_PER_MINUTE: "1000000", BLINDRELAY_LOG_LEVEL: "silent" },
    );
    const { url } = await this.relay.json<{ url: string }>();
    const login = await new Rest({ url }).logIn({ username: "ada", password: PASSWORD });
    const { api_token: accountToken } = login.user;
    const rest = new Rest({ url, token: accountToken });
    const keyring: Record<string, object> = {};
    await each(count, async (n) => {
      const id = `unit-${String(n).padStart(5, "0")}`;
      const made = await rest.ask("AgentCreated", "POST", "/agents", { name: id, agent_id: id });
      const agentToken = makeToken("e2e", randomBytes(32));
      keyring[id] = { agent_token: agentToken, packet_version: "1" };
      this.ids[n] = id;
      const socketUrl = `${url.replace(/^http/, "ws")}/wss`;
      const identity = { url: socketUrl, agentId: id, relayToken: made.api_token, agentToken };
      await this.start(
        identity,
        program(n, () => this.count(id)),
      );
    });
    const profile = { url, username: "ada", account_token: accountToken, keyring };
    writeFileSync(join(this.folder, "default.json"), JSON.stringify(profile), { mode: 0o600 });
  }

  private count(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
  }

  private async start(identity: Identity, program: Program): Promise<void> {
    const { agentId, agentToken } = identity;
    const storage = new MemoryStorage();
    const suite = nodeSuite();
    provisionBootCount(storage, suite, agentToken);
    const raised = raiseBootCount(storage, suite, agentToken);
    if (!raised.ok) throw new Error(raised.advice);
    const core = new AgentCore({
      ...identity,
      ...{ version: "1", runtime: "test", sdkVersion: "0", bootCount: raised.count },
      deviceRandom: randomBytes(16),
      serialNumber: agentId,
      ports: {
        link: webSocketLinks(null),
        timer: systemTimer(),
        random: (length) => randomBytes(length),
        suite,
        log: () => undefined,
      },
    });
    program(core.agent);
    this.cores.push(core);
    await new Promise<void>((resolve) => {
      core.link.onState(({ state }) => {
        if (state === "online") resolve();
      });
      core.start();
    });
  }

  /** A command of `blindrelay`, in this home. */
  command(args: readonly string[]): Running {
    return new Running(CLI, args, { BLINDRELAY_CONFIG_DIR: this.folder });
  }

  async close(): Promise<void> {
    for (const core of this.cores) core.stop();
    await this.relay?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A whole line of a journal. */
// biome-ignore lint/suspicious/noExplicitAny: tests examine arbitrary JSON.
export const journalLines = (path: string): any[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/**
 * Calls all agents and kills the command (SIGKILL) that many times, each time after a random number
 * of printed outcomes, then lets it end. Returns its outcomes by agent, and how often it was killed
 * before it had ended.
 */
export const callKilled = async (
  world: FleetWorld,
  journal: string,
  kills: number,
): Promise<{ outcomes: Map<string, string>; killed: number }> => {
  const args = ["call", "--where", "id~unit-*", "act", "--resume", journal, "--json"];
  let killed = 0;
  for (let i = 0; i < kills; i++) {
    const running = world.command(args);
    // Earlier outcomes are printed first, so the kills move through the fleet.
    const least = (world.ids.length * i) / kills;
    const lines = Math.floor(least + (Math.random() * world.ids.length) / kills);
    try {
      for (let n = 0; n < lines; n++) await running.line();
      await new Promise((done) => setTimeout(done, Math.random() * 20));
    } catch {
      // It ended before.
    }
    const { code } = await running.stop("SIGKILL");
    if (code === null) killed++;
  }
  const { stdout } = await world.command(args).ended;
  const outcomes = new Map<string, string>();
  for (const line of stdout.trim().split("\n")) {
    const { agent_id, outcome } = JSON.parse(line);
    outcomes.set(agent_id, outcome);
  }
  return { outcomes, killed };
};

/** What contradicts "each ran exactly once, or is reported as unknown"; nothing, if it holds. */
export const broken = (world: FleetWorld, outcomes: ReadonlyMap<string, string>): string[] =>
  world.ids.flatMap((id) => {
    const runs = world.runs.get(id) ?? 0;
    const outcome = outcomes.get(id) ?? "missing";
    const isRight = outcome === "unknown" ? runs <= 1 : outcome === "ok" && runs === 1;
    return isRight ? [] : [`${id}: ${outcome}, ran ${runs} times`];
  });
