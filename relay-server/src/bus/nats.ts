/**
 * The transport over core NATS: no JetStream, nothing stored. Nothing is queued while the server is
 * down, so no message arrives after its deadline. If the server is down when the relay starts, the
 * relay runs without it until it is available.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import { Failure } from "@blindrelay/protocol/command-line";
import { loginOf } from "@blindrelay/protocol/net";
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type Msg,
  type NatsConnection,
} from "@nats-io/transport-node";
import type { Logger } from "pino";
import { contained, detached } from "../base/contain.ts";
import type { Delivery, Transport } from "./transport.ts";

/**
 * A server that fails to answer twice within this time is gone; the client's default is minutes.
 */
const PING_MS = 1000;
const RECONNECT_MS = 500;
/**
 * How long a start, and each later attempt, waits for a server; the relay runs without one
 * meanwhile.
 */
const FIRST_CONNECT_MS = 2000;
/** How long the last messages may take to reach the server. */
const CLOSE_MS = 1000;
const NO_RESPONDERS = 503;

export interface NatsSettings {
  /** `nats://user:password@host:4222`, or a token as the user; `tls://` requires TLS. */
  readonly url: string;
  /** PEM files. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** A `.creds` file: a JWT and its nkey. */
  readonly creds?: string | undefined;
  /** Name of this connection in the server's lists. */
  readonly name: string;
  /** The longest message that the server must accept. */
  readonly minBytes: number;
}

type Log = Pick<Logger, "info" | "warn" | "error">;

/**
 * Resolves when the server is connected, or could not be within two seconds. Rejects with a Failure
 * for problems that waiting does not solve: unreadable files, or a server that accepts only short
 * messages.
 */
export const openNats = async (settings: NatsSettings, log: Log): Promise<Transport> => {
  const transport = new NatsTransport(optionsOf(settings), settings.minBytes, log);
  await transport.start();
  return transport;
};

/**
 * The servers of a cluster, as NATS's own tools write them: with commas, and the scheme and the
 * login at the first, or at each. Throws a Failure for other texts.
 */
const addressesOf = (text: string): [URL, ...URL[]] => {
  const [scheme = ""] = text.split("://");
  // A password may have commas.
  const addresses = text.split(/,(?=[^@]*$|\s*(?:nats|tls):\/\/)/).map((part) => {
    const address = part.includes("://") ? part.trim() : `${scheme}://${part.trim()}`;
    if (URL.canParse(address) && new URL(address).host !== "") return new URL(address);
    throw new Failure("usage", "--bus: expected nats://HOST:PORT, or several with commas");
  });
  return addresses as [URL, ...URL[]];
};

const hasAnotherLogin = (url: URL, user: string, password: string): boolean => {
  if (url.username === "" && url.password === "") return false;
  const own = loginOf(url);
  return own.user !== user || own.password !== password;
};

const optionsOf = ({ url, ca, cert, key, creds, name }: NatsSettings): ConnectionOptions => {
  const [first, ...others] = addressesOf(url);
  const { user, password } = loginOf(first);
  const login =
    creds !== undefined
      ? { authenticator: credsIn(readable("--bus-creds", creds)) }
      : password !== ""
        ? { user, pass: password }
        : user !== ""
          ? { token: user }
          : {};
  // By name, so that each connection reads them again: they are renewed while the relay runs.
  const files = {
    ...(ca === undefined ? {} : { caFile: readable("--bus-ca", ca) }),
    ...(cert === undefined ? {} : { certFile: readable("--bus-cert", cert) }),
    ...(key === undefined ? {} : { keyFile: readable("--bus-key", key) }),
  };
  const isTls = first.protocol === "tls:" || Object.keys(files).length > 0;
  if (!isTls && others.some(({ protocol }) => protocol === "tls:")) {
    throw new Failure(
      "usage",
      "--bus: some servers have tls:// and some have not: write it at all of them",
    );
  }
  if (creds === undefined && others.some((other) => hasAnotherLogin(other, user, password))) {
    throw new Failure("usage", "--bus: all servers need one login: write it at the first alone");
  }
  return {
    servers: [first, ...others].map(({ host }) => host),
    ...login,
    ...(isTls ? { tls: { ...files, ...identityOf([first, ...others]) } } : {}),
    name,
    maxReconnectAttempts: -1,
    // The client would give up at the second refusal, but an operator may still correct the
    // password.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: RECONNECT_MS,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: FIRST_CONNECT_MS,
  };
};

/**
 * The client omits an address from the handshake, and Node then expects "localhost". Which server
 * it reached is not known then: the certificate is one for any of the addresses.
 */
const identityOf = (servers: readonly URL[]) => {
  const hosts = servers.map(({ hostname }) => hostname.replace(/^\[|\]$/g, ""));
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  if (addresses.length === 0) return {};
  const check: typeof checkServerIdentity = (host, cert) => {
    if (hosts.includes(host)) return checkServerIdentity(host, cert);
    const problems = addresses.map((address) => checkServerIdentity(address, cert));
    return problems.includes(undefined) ? undefined : problems[0];
  };
  return { checkServerIdentity: check };
};

/** The path, if there is a file to be read. */
const readable = (flag: string, path: string): string => {
  try {
    readFileSync(path);
    return path;
  } catch (error) {
    throw new Failure("usage", `${flag} cannot be read: ${(error as Error).message}`, error);
  }
};

/**
 * Reads the file for each login. While it is away or half written, as in a renewal, the last one
 * counts: the client would give up for good if this threw.
 */
const credsIn = (path: string): Authenticator => {
  let last = credsAuthenticator(readFileSync(path));
  return (nonce) => {
    try {
      const read = credsAuthenticator(readFileSync(path));
      const login = read(nonce);
      last = read;
      return login;
    } catch {
      // The server refuses what has ended, and the next attempt reads again.
      return last(nonce);
    }
  };
};

interface Subscribed {
  readonly subject: string;
  readonly take: (delivery: Delivery) => void;
  /** Null until the server is available for the first time. */
  unsubscribe: (() => void) | null;
}

class NatsTransport implements Transport {
  isUp = false;
  backlogBytes = 0;
  readonly #options: ConnectionOptions;
  readonly #minBytes: number;
  readonly #log: Log;
  /** Null until the server is available for the first time. */
  #connection: NatsConnection | null = null;
  readonly #subscribed = new Set<Subscribed>();
  #retry: NodeJS.Timeout | undefined;
  #flushing = false;
  #closed = false;
  #listener: () => void = () => undefined;

  constructor(options: ConnectionOptions, minBytes: number, log: Log) {
    this.#options = options;
    this.#minBytes = minBytes;
    this.#log = log;
  }

  async start(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      if (error instanceof Failure) throw error;
      const missing = "the bus cannot be reached: this relay runs without other nodes until it is";
      this.#log.error({ err: error }, missing);
      this.#retryLater();
    }
  }

  publish(subject: string, payload: Uint8Array, replyTo?: string): void {
    if (this.#connection === null) return;
    this.#connection.publish(subject, payload, replyTo === undefined ? {} : { reply: replyTo });
    this.backlogBytes += payload.length;
    if (!this.#flushing) detached("bus", "a flush failed", this.#flush(this.#connection));
  }

  subscribe(subject: string, take: (delivery: Delivery) => void): () => void {
    const subscribed: Subscribed = { subject, take, unsubscribe: null };
    this.#subscribed.add(subscribed);
    if (this.#connection !== null) this.#bind(this.#connection, subscribed);
    return () => {
      this.#subscribed.delete(subscribed);
      subscribed.unsubscribe?.();
    };
  }

  onUp(listener: () => void): void {
    this.#listener = contained("bus", "the bus's return was not noticed", listener);
  }

  async close(): Promise<void> {
    const wasUp = this.isUp;
    this.isUp = false;
    this.#closed = true;
    clearTimeout(this.#retry);
    const connection = this.#connection;
    if (connection === null) return;
    if (wasUp) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSE_MS);
      });
      await Promise.race([connection.flush().catch(() => undefined), late]);
      clearTimeout(timer);
    }
    await connection.close();
  }

  async #connect(): Promise<void> {
    const connection = await connect(this.#options);
    const maxBytes = connection.info?.max_payload ?? 0;
    if (maxBytes < this.#minBytes) {
      await connection.close();
      const fix = `set max_payload of the NATS server to ${this.#minBytes}, or lower --max-message-bytes`;
      throw new Failure(
        "unreachable",
        `the bus accepts messages of at most ${maxBytes} bytes: ${fix}`,
      );
    }
    if (this.#closed) {
      await connection.close();
      return;
    }
    this.#connection = connection;
    for (const subscribed of this.#subscribed) this.#bind(connection, subscribed);
    this.isUp = true;
    detached("bus", "the connection is not watched", this.#watch(connection));
  }

  #retryLater(): void {
    const retry = async (): Promise<void> => {
      try {
        await this.#connect();
        if (!this.#closed) this.#back();
      } catch (error) {
        if (error instanceof Failure) this.#log.error(error.message);
        if (!this.#closed) this.#retryLater();
      }
    };
    this.#retry = setTimeout(contained("bus", "the bus is not tried again", retry), RECONNECT_MS);
  }

  #bind(connection: NatsConnection, subscribed: Subscribed): void {
    const { subject, take } = subscribed;
    const subscription = connection.subscribe(subject, {
      callback: contained("bus", "a message on the bus was dropped", (error, message) => {
        if (error === null) take(deliveryOf(message));
      }),
    });
    subscribed.unsubscribe = () => subscription.unsubscribe();
  }

  #back(): void {
    this.#log.info("the bus is back");
    this.isUp = true;
    this.#listener();
  }

  /** The server's answer to a flush means that it has read everything published before. */
  async #flush(connection: NatsConnection): Promise<void> {
    this.#flushing = true;
    while (this.isUp && this.backlogBytes > 0) {
      const covered = this.backlogBytes;
      try {
        await connection.flush();
      } catch {
        break; // the connection was lost, and with it messages in transit
      }
      this.backlogBytes -= covered;
    }
    this.#flushing = false;
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") {
        if (this.isUp) this.#log.warn("the bus is unavailable: other nodes cannot be reached");
        this.isUp = false;
        this.backlogBytes = 0;
      } else if (status.type === "reconnect") {
        this.#back();
      } else if (status.type === "error") {
        this.#log.error({ err: status.error }, "the bus complains");
      }
    }
  }
}

const deliveryOf = (message: Msg): Delivery => ({
  subject: message.subject,
  payload: message.data,
  replyTo: message.reply ?? null,
  nobody: message.headers?.code === NO_RESPONDERS && message.data.length === 0,
});
