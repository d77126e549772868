/**
 * A relay, the `blindrelay bridge` command and a client as users run them, with a device that the
 * test plays.
 */
import { chmodSync, readFileSync } from "node:fs";
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

  async open(): Promise<void> {
    await this.house.open();
    const login = ["login", "--url", this.house.url, "--username", "ada", "--password-stdin"];
    const { code, stderr } = await this.house.cli(login, {}, `${PASSWORD}\n`);
    if (code !== 0) throw new Error(stderr);
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.house.close();
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

  /** The command with one port in its configuration file. */
  bridge(agent: Added, port: object): Running {
    const { agent_id: id } = agent;
    const config = {
      relay: this.house.url,
      ports: [{ credentials: `${id}.json`, state_dir: `state-${id}`, ...port }],
    };
    const file = this.house.write(`bridge-${id}.json`, JSON.stringify(config));
    return this.house.start(["bridge", "--config", file, "--json"]);
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
export const newsOf = async (running: Running, event: string, state: string): Promise<News> => {
  for (;;) {
    const news = await running.json<News>();
    if (news.event === event && news.state === state) return news;
  }
};

/** The process's resident memory in KB. */
export const residentKb = (running: Running): number => {
  const status = readFileSync(`/proc/${running.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
};
