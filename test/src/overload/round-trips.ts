/**
 * A user's agent that echoes, and a client that calls it: how long the relay takes, and whether it
 * answers.
 */
import { type Message, RawLink } from "./raw-link.ts";
import type { RelayProcess } from "./relay-process.ts";

/** Requests on one client's link, half of what its session token permits; then it is replaced. */
const REQUESTS_EACH = 5000;
/** Answers later than this count as lost. */
const LOST_MS = 10_000;

export class RoundTrips {
  readonly #relay: RelayProcess;
  readonly #account: string;
  readonly #waiting = new Map<string, (payload: string) => void>();
  #agentId = "";
  #client: RawLink | null = null;
  #agent: RawLink | null = null;
  #count = 0;
  /** Milliseconds of each round trip since the last `takeTimes`. */
  #times: number[] = [];
  lost = 0;
  wrong = 0;
  isOpen = true;

  private constructor(relay: RelayProcess, account: string) {
    this.#relay = relay;
    this.#account = account;
  }

  /** `account`: a user's account token. */
  static async open(relay: RelayProcess, account: string): Promise<RoundTrips> {
    const trips = new RoundTrips(relay, account);
    const made = await relay.api("POST", "/agents", { name: "echo" }, account);
    const { agent_id, api_token } = made.body;
    trips.#agentId = agent_id;
    trips.#agent = await RawLink.open({
      port: relay.port,
      tls: relay.tls,
      auth: { client_type: "agent", api_token, agent_id },
      // Only these: answering an error would cause another error, endlessly.
      onMessage: ({ type, payload, request_id }: Message, link) => {
        if (type === "relay") link.send({ type: "relay", payload, request_id });
      },
      onClose: () => {
        trips.isOpen = false;
      },
    });
    trips.#client = await trips.#openClient();
    return trips;
  }

  #openClient(): Promise<RawLink> {
    return RawLink.open({
      port: this.#relay.port,
      tls: this.#relay.tls,
      auth: { client_type: "client", api_token: this.#account },
      onMessage: ({ type, payload, request_id }: Message) => {
        if (type === "relay") this.#waiting.get(request_id)?.(payload);
      },
      onClose: (link) => {
        if (link === this.#client) this.isOpen = false;
      },
    });
  }

  /** Makes one round trip and stores its time. */
  async once(): Promise<void> {
    this.#count += 1;
    if (this.#count % REQUESTS_EACH === 0) {
      const before = this.#client;
      this.#client = await this.#openClient();
      before?.close();
    }
    const request_id = `r-${this.#count}`;
    const payload = `echo ${this.#count}`;
    const started = performance.now();
    const answer = await new Promise<string | null>((resolve) => {
      const timer = setTimeout(() => resolve(null), LOST_MS);
      this.#waiting.set(request_id, (text) => {
        clearTimeout(timer);
        resolve(text);
      });
      this.#client?.send({ type: "relay", agent_id: this.#agentId, payload, request_id });
    });
    this.#waiting.delete(request_id);
    if (answer === null) this.lost += 1;
    else if (answer !== payload) this.wrong += 1;
    this.#times.push(performance.now() - started);
  }

  takeTimes(): number[] {
    const times = this.#times;
    this.#times = [];
    return times;
  }

  close(): void {
    this.#client?.close();
    this.#agent?.close();
  }
}

export const percentile = (times: readonly number[], percent: number): number => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0;
};
