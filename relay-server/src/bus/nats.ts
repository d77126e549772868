/**
 * The transport over core NATS: no JetStream, nothing stored. While the server is down nothing is
 * queued for it, so that no message arrives after its deadline.
 */
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { Failure } from "../failure.ts";
import type { Delivery, Transport } from "./transport.ts";

/** A server that twice does not answer for this long is gone; the client's default is minutes. */
const PING_MS = 1000;
const RECONNECT_MS = 500;
/** How long a start waits for a server before the relay runs without one. */
const FIRST_CONNECT_MS = 2000;
const NO_RESPONDERS = 503;

/** `minBytes`: the longest message that it has to carry. */
export const openNats = async (
  url: string,
  name: string,
  minBytes: number,
  log: Pick<Logger, "info" | "warn" | "error">,
): Promise<Transport> => {
  const connection = await connect({
    ...serverOf(url),
    name,
    maxReconnectAttempts: -1,
    // The client would give up at the second refusal; an operator may yet put the password right.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: RECONNECT_MS,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: FIRST_CONNECT_MS,
  }).catch((error: unknown) => {
    const cause = error instanceof Error ? error.message : String(error);
    throw new Failure("unreachable", `cannot reach the bus: ${cause}; look at --bus`, error);
  });
  const maxBytes = connection.info?.max_payload ?? 0;
  if (maxBytes < minBytes) {
    await connection.close();
    const fix = `set max_payload of the NATS server to ${minBytes}, or lower --max-message-bytes`;
    throw new Failure("unreachable", `the bus takes messages of ${maxBytes} bytes only: ${fix}`);
  }
  return new NatsTransport(connection, log);
};

/** `nats://user:password@host:4222`, or a token as the user; `tls://` asks for TLS. */
const serverOf = (url: string) => {
  const { protocol, host, username, password } = new URL(url);
  const credentials =
    password !== ""
      ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
      : username !== ""
        ? { token: decodeURIComponent(username) }
        : {};
  return { servers: host, ...credentials, ...(protocol === "tls:" ? { tls: {} } : {}) };
};

class NatsTransport implements Transport {
  isUp = true;
  backlogBytes = 0;
  readonly #connection: NatsConnection;
  #flushing = false;
  #listener: () => void = () => undefined;

  constructor(connection: NatsConnection, log: Pick<Logger, "info" | "warn" | "error">) {
    this.#connection = connection;
    void this.#watch(log);
  }

  publish(subject: string, payload: Uint8Array, replyTo?: string): void {
    this.#connection.publish(subject, payload, replyTo === undefined ? {} : { reply: replyTo });
    this.backlogBytes += payload.length;
    if (!this.#flushing) void this.#flush();
  }

  subscribe(subject: string, take: (delivery: Delivery) => void): () => void {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) take(deliveryOf(message));
      },
    });
    return () => subscription.unsubscribe();
  }

  onUp(listener: () => void): void {
    this.#listener = listener;
  }

  async close(): Promise<void> {
    this.isUp = false;
    await this.#connection.close();
  }

  /** The server's answer to a flush says that it has read whatever was published before. */
  async #flush(): Promise<void> {
    this.#flushing = true;
    while (this.isUp && this.backlogBytes > 0) {
      const covered = this.backlogBytes;
      try {
        await this.#connection.flush();
      } catch {
        break; // the connection was lost, and messages in transit with it
      }
      this.backlogBytes -= covered;
    }
    this.#flushing = false;
  }

  async #watch(log: Pick<Logger, "info" | "warn" | "error">): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === "disconnect") {
        if (this.isUp) log.warn("the bus is away: other nodes cannot be reached");
        this.isUp = false;
        this.backlogBytes = 0;
      } else if (status.type === "reconnect") {
        log.info("the bus is back");
        this.isUp = true;
        this.#listener();
      } else if (status.type === "error") {
        log.error({ err: status.error }, "the bus complains");
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
