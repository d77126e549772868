/**
 * Many agents behind one address, and a relay whose store can be put back: the real hub and its
 * look-ups over a real SQLite file, the real agent cores, links in memory, one virtual clock.
 */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { AgentCore, type AgentPorts } from "@blindrelay/agent-sdk";
import {
  ManualTimer,
  memoryNetwork,
  type RelayEnd,
  seededRandom,
} from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { initStore } from "@blindrelay/relay-server";
import { type HubLookups, Lockout, type RunningHub, runHub } from "@blindrelay/relay-server/core";
import {
  addAgent,
  findUserByName,
  issuePersistent,
  openData,
  storeLookups,
} from "@blindrelay/relay-server/testing";

const ADDRESS = "203.0.113.7";
const EPOCH_MS = 1_767_225_600_000; // 2026-01-01T00:00:00Z
const LATENCY_MS = 20;
/** Real look-ups take no virtual time; between two steps all of them are answered. */
const STEP_MS = 100;

type Data = Awaited<ReturnType<typeof openData>>;

export class Site {
  readonly timer = new ManualTimer();
  readonly agents: AgentCore[] = [];
  /** Of the running relay. */
  lockout = new Lockout();
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-restore-"));
  private data: Data | null = null;
  private running: RunningHub | null = null;
  private readonly ends = new Set<RelayEnd>();
  private lookingUp = 0;

  /** A relay with a store that knows the agents, which have not logged in yet. */
  async start(agents: number): Promise<void> {
    const username = "admin";
    const password = "correct horse battery";
    await initStore({ data: this.folder, username, password, totp: false });
    const { store, secrets } = await openData({ data: this.folder });
    const user = await findUserByName(store.db, username);
    if (user === undefined) throw new Error("init made no user");
    const tokens = await store.write(async (tx) => {
      const made: string[] = [];
      for (let n = 0; n < agents; n++) {
        const agentId = `agent-${n}`;
        const row = { agent_id: agentId, user_id: user.id, name: agentId, metadata: "{}" };
        await addAgent(tx, { ...row, created_at: this.wallMs() });
        const owner = { userId: user.id, agentId };
        made.push(await issuePersistent(tx, secrets, owner, this.wallMs()));
      }
      return made;
    });
    await store.close();
    await this.startRelay();
    for (const [n, token] of tokens.entries()) {
      const agent = this.agent(n, token);
      this.agents.push(agent);
      agent.start();
    }
  }

  /** Advances the time, and answers each look-up before it goes on. */
  async run(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.timer.advance(Math.min(left, STEP_MS));
      do await turn();
      while (this.lookingUp > 0);
    }
  }

  get online(): number {
    return this.agents.filter(({ link }) => link.state === "online").length;
  }

  /** The relay ends at once, and so do its links. */
  async stopRelay(): Promise<void> {
    this.running?.stop();
    this.running = null;
    for (const end of this.ends) end.close(1006, "killed");
    await this.data?.store.close();
    this.data = null;
  }

  async startRelay(): Promise<void> {
    const data = await openData({ data: this.folder });
    this.data = data;
    this.lockout = new Lockout();
    const wallMs = () => this.wallMs();
    this.running = runHub({
      lookups: this.counted(storeLookups(data.store)),
      writeBehind: {
        saveRequestsUsed: () => Promise.resolve(),
        agentSeen: () => Promise.resolve(),
      },
      lockout: this.lockout,
      clocks: { steadyMs: wallMs, wallMs },
      log: { error: () => undefined } as never,
      timer: {
        now: () => this.timer.now(),
        every: (ms, fn) => this.every(ms, fn),
        after: (ms, fn) => this.after(ms, fn),
        soon: (fn) => void this.timer.set(0, fn),
      },
    });
  }

  /** Of a relay that does not run. */
  backUp(): void {
    copyFileSync(this.file(""), join(this.folder, "backup.sqlite"));
  }

  /** The same, as docs/keys-and-backups.md says under "Backups". */
  restore(): void {
    for (const suffix of ["-wal", "-shm"]) rmSync(this.file(suffix), { force: true });
    copyFileSync(join(this.folder, "backup.sqlite"), this.file(""));
  }

  /** Somebody at the address guesses tokens until nobody there may log in. */
  lockOut(): void {
    while (this.lockout.fail(ADDRESS, this.wallMs()) === 0);
  }

  async end(): Promise<void> {
    for (const agent of this.agents) agent.stop();
    await this.stopRelay();
    rmSync(this.folder, { recursive: true });
  }

  private file(suffix: string): string {
    return join(this.folder, "store", `relay.sqlite${suffix}`);
  }

  private wallMs(): number {
    return EPOCH_MS + this.timer.now();
  }

  private counted({ authenticate, ownerOf, labelsOf }: HubLookups): HubLookups {
    return {
      ownerOf,
      labelsOf,
      authenticate: async (request) => {
        this.lookingUp += 1;
        try {
          return await authenticate(request);
        } finally {
          this.lookingUp -= 1;
        }
      },
    };
  }

  private every(ms: number, fn: () => void): () => void {
    let handle: unknown;
    const again = (): void => {
      handle = this.timer.set(ms, () => {
        again();
        fn();
      });
    };
    again();
    return () => this.timer.clear(handle);
  }

  private after(ms: number, fn: () => void): () => void {
    const handle = this.timer.set(ms, fn);
    return () => this.timer.clear(handle);
  }

  private agent(n: number, relayToken: string): AgentCore {
    const ports: AgentPorts = {
      link: memoryNetwork({
        timer: this.timer,
        latencyMs: LATENCY_MS,
        accept: (end) => this.accept(end),
      }),
      timer: this.timer,
      random: seededRandom(n),
      suite: nodeSuite(),
      log: () => undefined,
    };
    return new AgentCore({
      url: "wss://relay.example/wss",
      agentId: `agent-${n}`,
      relayToken,
      agentToken: makeToken("e2e", seededRandom(n)(32)),
      version: "1",
      runtime: "test",
      sdkVersion: "0",
      bootCount: 1,
      deviceRandom: seededRandom(n)(16),
      serialNumber: null,
      ports,
    });
  }

  /** A new link reaches the relay; false: it is down, or has too many of this address waiting. */
  private accept(end: RelayEnd): boolean {
    const { hub } = this.running ?? {};
    if (hub === undefined || !hub.hasRoom(ADDRESS)) return false;
    const connection = hub.connect(
      {
        send: (frame) =>
          end.send(typeof frame === "string" ? frame : Buffer.from(frame).toString("utf8")),
        queued: () => 0,
        close: (code, reason) => end.close(code, reason),
        pause: () => undefined,
        resume: () => undefined,
      },
      ADDRESS,
      this.wallMs(),
    );
    this.ends.add(end);
    const runs = () => this.running?.hub === hub;
    end.received = (text) => {
      if (runs()) hub.receive(connection, text, Buffer.from(text, "utf8"), this.wallMs());
    };
    end.closed = () => {
      this.ends.delete(end);
      if (runs()) hub.closed(connection, this.wallMs());
    };
    return true;
  }
}
