/**
 * A relay, the `blindrelay bridge` command and a client as users run them, with a device that the
 * test plays.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { type Client, connect } from "@blindrelay/client-sdk/node";
import { Cable } from "@blindrelay/tools/testing/serial/pty";
import { type Added, House, PASSWORD, type Running } from "../cli/processes.ts";

export interface News {
  readonly event: string;
  readonly state: string;
  readonly [field: string]: unknown;
}

/** Waits for what never comes end with the test's own time limit. */
export const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
};

export class BridgeHouse {
  readonly house = new House();
  private readonly clients: Client[] = [];
  private readonly cables: Cable[] = [];
  private readonly tools: ChildProcess[] = [];

  async open(settings: Parameters<House["open"]>[0] = {}): Promise<void> {
    await this.house.open(settings);
    const login = ["login", "--url", this.house.url, "--username", "ada", "--password-stdin"];
    const { code, stderr } = await this.house.cli(login, {}, `${PASSWORD}\n`);
    if (code !== 0) throw new Error(stderr);
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.house.close();
    for (const tool of this.tools) tool.kill();
    await Promise.all(this.cables.map((cable) => cable.end()));
  }

  async add(id: string): Promise<Added> {
    const { stdout } = await this.house.cli(["agent", "add", id, "--id", id, "--env", "--json"]);
    this.house.write(`${id}.json`, stdout);
    chmodSync(this.house.path(`${id}.json`), 0o600);
    return JSON.parse(stdout) as Added;
  }

  cable(): Cable {
    const cable = new Cable();
    this.cables.push(cable);
    return cable;
  }

  /** The command with the agent's port, or several, in its configuration file. */
  bridge(agent: Added, port: object | readonly object[], relay = this.house.url): Running {
    const { agent_id: id } = agent;
    const ports = [port].flat();
    const config = {
      relay,
      ports: ports.map((one) => ({
        credentials: `${id}.json`,
        state_dir: `state-${id}`,
        ...one,
      })),
    };
    const file = this.house.write(`bridge-${id}.json`, JSON.stringify(config));
    return this.house.start(["bridge", "--config", file, "--json"]);
  }

  /**
   * A program of this machine that has a terminal open: socat, as any other would.
   * `words`: `-u` for one direction, or `-U` for the other. With both, socat reads nothing while it
   * cannot write.
   */
  tool(path: string, ...words: string[]): ChildProcessByStdio<Writable, Readable, null> {
    const tcp = /^tcp:\/\/(.*)$/.exec(path);
    const place = tcp === null ? `OPEN:${path},raw,echo=0` : `TCP:${tcp[1]}`;
    const socat = spawn("socat", ["-b", "4096", ...words, "-", place], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.tools.push(socat);
    // Its end is the test's end.
    socat.stdin.on("error", () => undefined);
    return socat;
  }

  async client(): Promise<Client> {
    const profile = JSON.parse(readFileSync(this.house.path("config/default.json"), "utf8"));
    const client = await connect({
      url: this.house.url,
      accountToken: profile.account_token,
      presence: true,
    });
    this.clients.push(client);
    return client;
  }
}

/** Reads messages until one matches. */
export const newsOf = async (running: Running, event: string, state?: string): Promise<News> => {
  for (;;) {
    const news = await running.json<News>();
    if (news.event === event && (state === undefined || news.state === state)) return news;
  }
};

/** The process's resident memory in KB. */
export const residentKb = (running: Running): number => {
  const status = readFileSync(`/proc/${running.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
};
