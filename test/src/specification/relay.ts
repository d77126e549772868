/**
 * A relay on real sockets whose clock a test advances: `startServer` takes one as a parameter, so
 * 24 hours pass at once and everything else is as in production. Accessed by raw HTTP and raw
 * WebSocket only; no client, agent or protocol code of this product is loaded here
 * (scripts/boundaries enforces that).
 */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initStore, startServer } from "@blindrelay/relay-server";
import { type RawAnswer, RawHttp, type RawRequest } from "./raw-http.ts";
import { type OpenOptions, openWebSocket, type RawWebSocket } from "./raw-websocket.ts";

export const PASSWORD = "correct horse battery";
const START_MS = Date.UTC(2026, 0, 1);

export interface RelayOptions {
  /** Whether people log in with one-time codes. */
  readonly totp?: boolean;
  readonly settings?: Parameters<typeof startServer>[0];
}

/** An account: its persistent token, and the access token of its login. */
export interface Account {
  readonly username: string;
  readonly id: string;
  readonly accountToken: string;
  readonly accessToken: string;
}

/** An agent as the relay knows it. */
export interface RegisteredAgent {
  readonly agentId: string;
  readonly relayToken: string;
}

/** The `auth` of a client with the account token; `more` adds or replaces fields. */
export const clientAuth = ({ accountToken }: Account, more: object = {}) => ({
  client_type: "client",
  api_token: accountToken,
  ...more,
});

/** The `auth` of the agent itself. */
export const agentAuth = ({ agentId, relayToken }: RegisteredAgent, more: object = {}) => ({
  client_type: "agent",
  agent_id: agentId,
  api_token: relayToken,
  ...more,
});

export class Relay {
  readonly data = mkdtempSync(join(tmpdir(), "blindrelay-specification-"));
  url = "";
  metricsUrl = "";
  totpSecret: string | null = null;
  /** Stops the relay as a supervisor would, including its links. */
  stop: () => Promise<void> = async () => undefined;
  readonly #links: RawWebSocket[] = [];
  #nowMs = START_MS;
  #http: RawHttp | null = null;
  #admin: Promise<Account> | null = null;
  #addresses = 0;
  #names = 0;

  async start({ totp = false, settings = {} }: RelayOptions = {}): Promise<this> {
    const { data } = this;
    const made = await initStore({ data, username: "ada", password: PASSWORD, totp });
    this.totpSecret = made.totpSecret;
    const server = await startServer(
      {
        data,
        port: 0,
        metricsPort: 0,
        logLevel: "silent",
        // Each test has its own addresses, like peers behind a proxy.
        trustedProxies: ["127.0.0.1"],
        ...settings,
      },
      { clocks: { steadyMs: () => this.#nowMs, wallMs: () => this.#nowMs } },
    );
    this.url = server.url;
    this.metricsUrl = server.metricsUrl;
    this.stop = () => server.stop();
    this.#http = new RawHttp(server.url);
    return this;
  }

  async close(): Promise<void> {
    for (const link of this.#links) link.destroy();
    await this.stop();
    this.#http?.close();
    rmSync(this.data, { recursive: true });
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Advances the relay's clock. */
  advance(seconds: number): void {
    this.#nowMs += seconds * 1000;
  }

  /** An address without failures so far. */
  freshAddress(): string {
    this.#addresses += 1;
    return `10.0.${this.#addresses >> 8}.${this.#addresses & 255}`;
  }

  /** A path below the server's root. */
  async root(method: string, path: string, request: RawRequest = {}): Promise<RawAnswer> {
    const headers = { "x-forwarded-for": this.freshAddress(), ...request.headers };
    return (this.#http as RawHttp).send(method, path, { ...request, headers });
  }

  /** A path below `/api/v1`. */
  api(method: string, path: string, request?: RawRequest): Promise<RawAnswer> {
    return this.root(method, `/api/v1${path}`, request);
  }

  /** The current one-time code: RFC 6238 with SHA-1, 30 seconds and six digits. */
  totpCode(secret = this.totpSecret as string): string {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(Math.floor(this.#nowMs / 30_000)));
    const mac = createHmac("sha1", fromBase32(secret)).update(counter).digest();
    const offset = (mac.at(-1) as number) & 15;
    return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
  }

  /** The first admin, logged in once. */
  admin(): Promise<Account> {
    this.#admin ??= this.logIn("ada");
    return this.#admin;
  }

  /** Creates a user of the test's own, and logs it in. */
  async user(): Promise<Account> {
    this.#names += 1;
    const username = `user-${this.#names}`;
    const { accountToken } = await this.admin();
    const body = { username, password: PASSWORD, role: "user" };
    const made = await this.api("POST", "/admin/users", { token: accountToken, body });
    if (made.status !== 201) throw new Error(made.text);
    return this.logIn(username);
  }

  async logIn(username: string): Promise<Account> {
    const body = { username, password: PASSWORD };
    const { status, json, text } = await this.api("POST", "/auth/login", { body });
    if (status !== 200) throw new Error(text);
    const { access_token: accessToken, user } = json;
    return { username, id: user.id, accountToken: user.api_token, accessToken };
  }

  /** Registers an agent. */
  async device(owner: Account): Promise<RegisteredAgent> {
    const body = { name: "pump" };
    const made = await this.api("POST", "/agents", { token: owner.accountToken, body });
    if (made.status !== 201) throw new Error(made.text);
    return { agentId: made.json.agent_id, relayToken: made.json.api_token };
  }

  async sessionToken(token: string): Promise<string> {
    return (await this.api("POST", "/auth/session", { token })).json.session_token;
  }

  /** An unauthenticated link. */
  async open(address = this.freshAddress(), options: OpenOptions = {}): Promise<RawWebSocket> {
    const headers = { "X-Forwarded-For": address, ...options.headers };
    const link = await openWebSocket(`${this.url}/wss`, { ...options, headers });
    this.#links.push(link);
    return link;
  }

  /** Sends an `auth` on a new link; returns its answer too. */
  async auth(fields: object, address?: string, options?: OpenOptions) {
    const link = await this.open(address, options);
    link.send({ type: "auth", ...fields });
    return { link, answer: await link.next() };
  }

  /** A client's link, authenticated. */
  async client(account: Account, more: object = {}): Promise<RawWebSocket> {
    const fields = { api_token: account.accountToken, client_type: "client", ...more };
    return accepted(await this.auth(fields));
  }

  /** An agent's link, authenticated. */
  async agent(device: RegisteredAgent, more: object = {}): Promise<RawWebSocket> {
    const fields = { api_token: device.relayToken, agent_id: device.agentId };
    return accepted(await this.auth({ client_type: "agent", ...fields, ...more }));
  }
}

const accepted = ({ link, answer }: { link: RawWebSocket; answer: { status: string } }) => {
  if (answer.status !== "authenticated") throw new Error(JSON.stringify(answer));
  return link;
};

const fromBase32 = (text: string): Buffer => {
  let bits = "";
  for (const letter of text.replace(/=+$/, "")) {
    bits += "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0");
  }
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
};
