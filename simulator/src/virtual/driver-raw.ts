/** Peers without an SDK: each text that they send is written by the driver that plays them. */
import { Stream } from "../base/random-streams.ts";
import { sleep } from "./client.ts";
import type { DriverWorld } from "./driver-world.ts";
import { Conditions, type Peer, type Wire } from "./net.ts";

const NETWORK = { latencyUs: 20_000, jitterUs: 0, bytesPerS: 0 };
const PING = '{"type":"ping"}';
/** The relay answers well within this, unless something is broken. */
export const ANSWER_MS = 20_000;

export interface Told {
  readonly type?: string;
  readonly code?: string;
  readonly status?: string;
  readonly sid?: string;
  readonly session_token?: string;
}

/** One connection. */
export class RawPeer implements Peer {
  readonly id: string;
  readonly address: string;
  readonly conditions = new Conditions(NETWORK);
  readonly netDraws: Stream;
  readonly pingSalt = 1;
  readonly userId: string;
  readonly isAgent: boolean;
  /** Whether the link is open. */
  isOpen = false;
  isOver = false;
  /** How it ended. */
  ending = "";
  /** What came and was not asked for, oldest first. */
  readonly heard: Told[] = [];
  private readonly world: DriverWorld;
  private wire: Wire | null = null;
  private wake: () => void = () => undefined;

  constructor(
    world: DriverWorld,
    own: { id: string; address: string; userId: string },
    isAgent: boolean,
  ) {
    this.world = world;
    this.id = own.id;
    this.address = own.address;
    this.userId = own.userId;
    this.isAgent = isAgent;
    this.netDraws = new Stream(`${world.seed}/${own.id}/net`);
  }

  /** Whether the connection is open within a few seconds. */
  async connect(): Promise<boolean> {
    this.wire = this.world.net.connect(this, {
      opened: () => {
        this.isOpen = true;
        this.wake();
      },
      received: (text) => this.received(text),
      closed: (code, reason) => {
        this.isOpen = false;
        this.isOver = true;
        this.ending = `${code} ${reason}`;
        this.wake();
      },
    });
    await this.until(() => this.isOpen || this.isOver);
    return this.isOpen;
  }

  send(message: object | string): void {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    if (this.isOpen) this.wire?.send(text);
  }

  /** Sends, and waits for what `is` accepts: null if it did not come, or the link ended. */
  async ask(message: object | string, is: (told: Told) => boolean): Promise<Told | null> {
    this.send(message);
    return this.next(is);
  }

  /** The first message that `is` accepts; it and all before it are taken out. */
  async next(is: (told: Told) => boolean, ms = ANSWER_MS): Promise<Told | null> {
    await this.until(() => this.isOver || this.heard.some(is), ms);
    const at = this.heard.findIndex(is);
    return at < 0 ? null : (this.heard.splice(0, at + 1)[at] as Told);
  }

  /** Waits until `holds`, at most this long. */
  async until(holds: () => boolean, ms = ANSWER_MS): Promise<boolean> {
    const { clock } = this.world;
    const endsUs = clock.nowUs + ms * 1000;
    while (!holds() && clock.nowUs < endsUs) {
      await new Promise<void>((resolve) => {
        const limit = clock.at(endsUs, () => this.wake(), null, null);
        this.wake = () => {
          clock.cancel(limit);
          this.world.stir();
          resolve();
        };
      });
    }
    return holds();
  }

  /** It stops reading, or reads again. */
  stall(isStalled: boolean): void {
    this.conditions.stalled += isStalled ? 1 : -1;
    if (!isStalled) this.wire?.readAgain();
  }

  close(): void {
    this.wire?.close(1000, "");
  }

  private received(text: string): void {
    if (text === PING) {
      this.wire?.send('{"type":"pong"}');
      return;
    }
    this.heard.push(JSON.parse(text) as Told);
    this.wake();
  }
}

/** What the drivers of raw peers use. */
export class RawWorld {
  readonly id: string;
  readonly account: string;
  readonly agentId: string;
  private readonly world: DriverWorld;
  private readonly network: string;
  private readonly draws: Stream;
  private readonly peers: RawPeer[] = [];
  private agentToken = "";
  private sinceUs = 0;
  /** Addresses, and connections. */
  private made = 0;
  private connections = 0;

  /** `network`: the first three numbers of its addresses, with a dot. */
  constructor(world: DriverWorld, id: string, account: string, network: string) {
    this.world = world;
    this.id = id;
    this.account = account;
    this.network = network;
    this.agentId = `${account}-agent`;
    this.draws = new Stream(`${world.seed}/${id}/raw`);
  }

  below(limit: number): number {
    return this.draws.below(limit);
  }

  /** A name of this many characters. */
  name(length: number): string {
    return Buffer.from(this.draws.bytes(length)).toString("base64url").slice(0, length);
  }

  sleep(ms: number): Promise<void> {
    return sleep(this.world, ms);
  }

  /** A play begins. */
  begin(): void {
    this.sinceUs = this.world.clock.nowUs;
  }

  /** Whether no fault has been active since a while before it, so that the relay must answer. */
  get isQuiet(): boolean {
    return this.world.liveness.isQuiet(this.sinceUs);
  }

  /** One that no other connection has, unless it is asked for. */
  anotherAddress(): string {
    this.made += 1;
    return `${this.network}${1 + (this.made % 250)}`;
  }

  /** A connection that has sent nothing; null if there is none. */
  async connect(isAgent = false, address = this.anotherAddress()): Promise<RawPeer | null> {
    this.connections += 1;
    const own = {
      id: `${this.id}/${this.connections}`,
      address,
      userId: this.account,
    };
    const peer = new RawPeer(this.world, own, isAgent);
    this.peers.push(peer);
    return (await peer.connect()) ? peer : null;
  }

  /** The right login of a client. */
  login(): object {
    const token = this.world.store.accountToken(this.account);
    return { type: "auth", api_token: token, client_type: "client" };
  }

  /** A client that is logged in, with a session token if there is one, and its session token. */
  async client(session?: string): Promise<{ peer: RawPeer; session: string } | null> {
    const peer = await this.connect();
    if (peer === null) return null;
    const auth =
      session === undefined
        ? this.login()
        : { type: "auth", session_token: session, client_type: "client" };
    const answer = await peer.ask(auth, ({ type }) => type === "auth_response");
    if (answer === null || answer.status === "failed") return null;
    return { peer, session: answer.session_token ?? session ?? "" };
  }

  /** This account's agent, logged in. */
  async agent(): Promise<RawPeer | null> {
    const peer = await this.connect(true);
    if (peer === null) return null;
    if (this.agentToken === "") {
      this.agentToken = this.world.store.issueAgent(this.agentId, this.account);
    }
    const answer = await peer.ask(
      {
        type: "auth",
        api_token: this.agentToken,
        client_type: "agent",
        agent_id: this.agentId,
        runtime: "raw",
      },
      ({ type }) => type === "auth_response",
    );
    return answer === null || answer.status === "failed" ? null : peer;
  }

  /** An envelope for this account's agent with a packet that it cannot open. */
  envelope(sid: string, seq: number, p = "AAAA", agentId = this.agentId): string {
    const payload = JSON.stringify({ v: "1", sid, seq, p });
    return JSON.stringify({ type: "relay", agent_id: agentId, payload });
  }

  /** Reports what the relay did not say or do. */
  untold(detail: string): void {
    this.world.violate("told", `${this.id}: ${detail}`);
  }

  leave(): void {
    for (const peer of this.peers.splice(0)) peer.close();
  }
}
