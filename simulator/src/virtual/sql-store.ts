/**
 * The relay's own store, in memory, behind its REST API, for a world with one node. Its tokens are
 * random, so the world sees others in their place, which its seed decides.
 */
import { hash as digest } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import type { Control, Method, StoreWriteBehind } from "@blindrelay/relay-server/control";
import type { AgentReport, AuthRequest, AuthResult } from "@blindrelay/relay-server/core";
import { getOrMake } from "../base/maps.ts";
import type { Stream } from "../base/random-streams.ts";
import { DEFAULT_ACCOUNT } from "../scenario/plan.ts";
import type { Clock } from "./clock.ts";
import { operate } from "./operator.ts";
import { FLUSH_MS, RelayStore, type StoreWatcher } from "./relay-store.ts";

/** How often an operator does something. */
const OPERATE_MS = 15_000;

const hash = (token: string): string => digest("sha256", token);

export class SqlStore extends RelayStore {
  readonly endsLinks = true;
  private readonly control: Control;
  /** Tokens of accounts: the world's, and the store's. */
  private readonly tokens = new Map<string, string>();
  private readonly accounts = new Map<string, string>();
  private readonly owners = new Map<string, string>();
  /** Tokens of the world -> those of the store; of session tokens also the hashes. */
  private readonly inStore = new Map<string, string>();
  /** Session tokens of the store -> those of the world. */
  private readonly inWorld = new Map<string, string>();
  /** Accounts and agents are made one after the other, and before anybody logs in. */
  private made: Promise<void> = Promise.resolve();
  private writing: StoreWriteBehind;
  private flushing = false;

  /** `acts`: what its operator does. */
  constructor(
    clock: Clock,
    draws: Stream,
    watcher: StoreWatcher,
    { latencyMs, control, acts }: { latencyMs: number; control: Control; acts: Stream },
  ) {
    super(clock, draws, watcher, latencyMs);
    this.control = control;
    this.writing = control.startWriting();
    this.accountToken(DEFAULT_ACCOUNT);
    clock.after(OPERATE_MS, () => this.operate(acts));
  }

  accountToken(userId: string): string {
    const made = () => this.issue("account", () => this.accountInStore(userId));
    return getOrMake(this.tokens, userId, made);
  }

  issueAgent(agentId: string, userId = this.owners.get(agentId) ?? DEFAULT_ACCOUNT): string {
    const isNew = !this.owners.has(agentId);
    this.owners.set(agentId, userId);
    return this.issue("agent", async () => {
      const account = await this.accountInStore(userId);
      const answer = isNew
        ? await this.request("POST", "/agents", account, { name: agentId, agent_id: agentId })
        : await this.request("POST", `/agents/${agentId}/rotate-token`, account);
      return (answer as { api_token: string }).api_token;
    });
  }

  private issue(kind: "account" | "agent", make: () => Promise<string>): string {
    const token = makeToken(kind, this.draws.bytes(32));
    this.made = this.made.then(async () => {
      this.inStore.set(token, await make());
    });
    this.work(this.made);
    this.watcher.stir();
    return token;
  }

  /** An account's token in the store. It is made on first use, as by the model. */
  private async accountInStore(userId: string): Promise<string> {
    const token = this.accounts.get(userId) ?? (await this.control.addAccount(userId));
    this.accounts.set(userId, token);
    return token;
  }

  /** `token`: of the store. Rejects unless the request succeeds. */
  private async request(
    method: Method,
    path: string,
    token: string,
    body?: object,
  ): Promise<unknown> {
    const answer = await this.control.request(method, path, token, body);
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }

  private stored(token: string): string {
    return this.inStore.get(token) ?? token;
  }

  protected async decide(request: AuthRequest): Promise<AuthResult> {
    await this.made;
    const { apiToken, sessionToken, renews } = request;
    const result = await this.control.lookups.authenticate({
      ...request,
      ...(apiToken === undefined ? {} : { apiToken: this.stored(apiToken) }),
      ...(sessionToken === undefined ? {} : { sessionToken: this.stored(sessionToken) }),
      ...(renews === undefined ? {} : { renews: this.stored(renews) }),
    });
    if (!result.ok) return result;
    const token = this.sessionOf(result);
    const admitted = { ...result, sessionToken: token, sessionHash: hash(token) };
    if (admitted.role === "agent" || admitted.renews === undefined) return admitted;
    return { ...admitted, renews: hash(renews as string) };
  }

  /** The session token that the world sees. */
  private sessionOf(result: { sessionToken: string; sessionHash: string }): string {
    return getOrMake(this.inWorld, result.sessionToken, () => {
      const token = makeToken("session", this.draws.bytes(32));
      this.inStore.set(token, result.sessionToken);
      this.inStore.set(hash(token), result.sessionHash);
      return token;
    });
  }

  protected async findOwner(agentId: string): Promise<string | null> {
    await this.made;
    return this.control.lookups.ownerOf(agentId);
  }

  async saveRequestsUsed(sessionHash: string, used: number, added: number): Promise<void> {
    this.watcher.requestsSaved(sessionHash, used);
    await this.writing.saveRequestsUsed(this.stored(sessionHash), used, added);
    this.flushSoon();
  }

  async agentSeen(
    agentId: string,
    nowMs: number,
    report: AgentReport | null,
    online: boolean,
  ): Promise<void> {
    await this.writing.agentSeen(agentId, nowMs, report, online);
    this.flushSoon();
  }

  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    const { writing } = this;
    this.clock.after(FLUSH_MS, () => {
      if (writing !== this.writing) return;
      this.flushing = false;
      if (this.away > 0) this.flushSoon();
      else this.work(writing.flush());
      this.watcher.stir();
    });
  }

  crash(): void {
    this.writing = this.control.startWriting();
    this.flushing = false;
  }

  private operate(acts: Stream): void {
    const owned = [...this.owners];
    const [agentId, userId] = owned[acts.below(owned.length)] as [string, string];
    const account = this.accounts.get(userId) as string;
    const desk = {
      request: (method: Method, path: string, body?: object) =>
        this.request(method, path, account, body),
      told: (id: string, online: boolean) => this.watcher.told(id, online),
    };
    const failed = (error: Error): void => this.watcher.failed(error.message);
    this.work(operate(desk, agentId, acts).catch(failed));
    this.watcher.stir();
    this.clock.after(OPERATE_MS, () => this.operate(acts));
  }

  override rows(): Promise<string[]> {
    return this.control.rows();
  }
}
