/** A real relay with one person's account on it, for agents of any runtime. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { initStore, startServer } from "@blindrelay/relay-server";

export interface Credentials {
  readonly url: string;
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
}

export interface RelayFixture {
  readonly client: Client;
  /** Another client of the same user; the caller closes it. */
  connect(): Promise<Client>;
  /** A new agent on the relay, with a new secret. */
  addAgent(name: string): Promise<Credentials>;
  end(): Promise<void>;
}

const WHO = { username: "ann", password: "a long enough password" };

export const openRelayFixture = async (): Promise<RelayFixture> => {
  const data = mkdtempSync(join(tmpdir(), "blindrelay-fixture-"));
  await initStore({ data, ...WHO, totp: false });
  const server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
  const post = async <T>(path: string, body: object, token = ""): Promise<T> => {
    const response = await fetch(`${server.url}/api/v1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    return (await response.json()) as T;
  };
  const login = await post<{ user: { api_token: string } }>("/auth/login", WHO);
  const accountToken = login.user.api_token;
  const client = await connect({ url: server.url, accountToken });
  return {
    client,
    connect: () => connect({ url: server.url, accountToken }),
    async addAgent(name) {
      const made = await post<{ agent_id: string; api_token: string }>(
        "/agents",
        { name },
        accountToken,
      );
      return {
        url: server.url,
        agentId: made.agent_id,
        relayToken: made.api_token,
        agentToken: makeToken("e2e", crypto.getRandomValues(new Uint8Array(32))),
      };
    },
    async end() {
      client.close();
      await server.stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
};
