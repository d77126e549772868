/**
 * The model of a logged-in page, kept up to date by messages from the relay and the agents: the
 * agents with their presence, those whose secret was entered, and their events.
 *
 * The access token, the session token and the secrets are kept in this object's memory only.
 */
import {
  type Agent as AgentLink,
  type AgentOptions,
  CallError,
  type Client,
  connect,
  type FleetCallOptions,
  type FleetOutcome,
  type LinkReport,
  type Presence,
} from "@blindrelay/client-sdk/browser";
import { hasSecret, nextSerial, secretState, sendSecret } from "@blindrelay/client-sdk/rekey";
import {
  type AnswerName,
  type Query,
  type Rest,
  withQuery,
} from "@blindrelay/client-sdk/rest/core";
import { rekeyProof } from "@blindrelay/protocol/crypto";
import type {
  AccessKeyCreate,
  AccessKeyCreated,
  AccessKeyPage,
  Agent,
  AgentCreated,
  AuditPage,
  LoginAnswer,
  Release,
  ReleasePage,
  ReleasePatch,
} from "@blindrelay/protocol/schema/rest";
import { nobleChachaSuite, sha256Hex } from "@blindrelay/protocol/suites/noble-chacha";
import { readInfo, type SystemInfo } from "./answers.ts";
import type { BoardTrouble } from "./board/troubles.ts";
import { fixOf } from "./fixes.ts";
import { restOf, Trouble } from "./rest.ts";
import type { FoundSecret } from "./secret-file.ts";

/** Rows of releases and of the audit log that a request reads. */
const PAGE_LIMIT = "100";
/** More are shown in the audit log by their ids, unless it names them itself. */
const USERS_LIMIT = "200";
/** The whole list is read, so that it can be searched, sorted and counted: by the largest pages. */
const AGENTS_LIMIT = "200";
/** More than one account should have; the list says that it is cut. */
const MAX_AGENTS = 10_000;
/** Events are for display, not for storage. */
const MAX_HEARD = 300;
/** Simultaneous changes, for example after a relay's restart, are drawn together. */
const DRAW_DELAY_MS = 50;
/** Agents that went online are queried together: their firmware may have changed. */
const REFRESH_DELAY_MS = 300;
/** With more changed agents than this, fetching the whole list is cheaper, if not too often. */
const MAX_SINGLE_LOOKUPS = 5;
const RELIST_MS = 30_000;

/** What calls to an agent that is starting end with. */
const PASSING = ["AGENT_OFFLINE", "TIMED_OUT", "OUTCOME_UNKNOWN", "UNREACHABLE", "BUSY"];
const POLL_MS = 500;

export interface Heard {
  readonly id: number;
  readonly at: Date;
  readonly agentId: string;
  readonly kind: "presence" | "event" | "missing";
  readonly what: string;
  readonly data?: unknown;
}

export type AgentColumn = "name" | "online" | "firmware_version" | "runtime" | "last_seen";

/** What the list of agents shows: kept here, so that it is the same after a look at an agent. */
export interface AgentListing {
  /** Part of a name or an identifier, in any case, or a selector. */
  readonly search: string;
  readonly online: "" | "online" | "offline";
  readonly sort: AgentColumn;
  readonly descending: boolean;
}

/** One call to each of many agents. */
export interface Many {
  readonly total: number;
  /** So far. */
  readonly outcomes: readonly FleetOutcome[];
  readonly isRunning: boolean;
  /** Why it ended early, if it did. */
  readonly trouble: Trouble | null;
}

/** An agent whose secret was entered and verified. */
export interface Opened {
  readonly link: AgentLink;
  readonly info: SystemInfo;
}

const optionsOf = ({ version, deviceKey }: FoundSecret): AgentOptions => ({
  version: version ?? "1",
  ...(deviceKey === undefined ? {} : { deviceKey }),
});

/** A secret that is sent to a device which has another one. */
export interface Renewal {
  readonly renewed: FoundSecret;
  readonly id: string;
}

const agentPath = (agentId: string): string => `/agents/${encodeURIComponent(agentId)}`;

export class Model {
  readonly user: LoginAnswer["user"];
  /** All of the account, up to a limit. */
  agents: Agent[] = [];
  /** The account has more than the limit. */
  isCut = false;
  agentsTrouble: Trouble | null = null;
  /** The whole list has arrived once. */
  loaded = false;
  listing: AgentListing = { search: "", online: "", sort: "name", descending: false };
  /** Secrets that were made here, read from a keyring or typed. */
  readonly secrets = new Map<string, FoundSecret>();
  /** Agents whose secret was made in this page, and is nowhere else yet but on the device. */
  readonly unkept = new Set<string>();
  /** Boards that are being set up: one would be left half-written. */
  settingUp = 0;
  heard: Heard[] = [];
  /**
   * The latest call to many agents: kept here, because it goes on while another view, or another
   * part of the list, is shown.
   */
  many: Many | null = null;
  #stopMany: AbortController | null = null;
  /** Names by ids, for the audit log. */
  readonly usernames = new Map<string, string>();
  readonly opened = new Map<string, Opened>();
  /** What ends the listening to each of them. */
  readonly #listening = new Map<string, (() => void)[]>();
  link: LinkReport = { state: "online" };
  /** For screen readers: the last change of presence. */
  announcement = "";

  /** With the login's access token. One for all requests: it knows those whose answer was lost. */
  #rest: Rest;
  #sessionToken: string;
  #client: Client;
  #ended: (notice: Trouble) => void;
  readonly #left: (secrets: ReadonlyMap<string, FoundSecret>) => void;
  #isOver = false;
  readonly #watchers = new Set<() => void>();
  #drawTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #stale = new Set<string>();
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;
  /** The number of the newest reading of the list; answers to older ones are dropped. */
  #reading = 0;
  /** What became of agents since the newest page was asked for; null: it is gone. */
  readonly #changed = new Map<string, Agent | null>();
  /** How often each agent was removed. */
  readonly #drops = new Map<string, number>();
  #listedAt = Number.NEGATIVE_INFINITY;
  #heardCount = 0;
  /** The relay's latest presence of each agent, listed or not. */
  readonly #presence = new Map<string, Presence>();

  private constructor(
    login: LoginAnswer,
    sessionToken: string,
    client: Client,
    ended: (notice: Trouble) => void,
    left: (secrets: ReadonlyMap<string, FoundSecret>) => void,
  ) {
    this.user = { ...login.user, api_token: null }; // The page does not need the account's token.
    this.#rest = restOf(login.access_token);
    this.#sessionToken = sessionToken;
    this.#client = client;
    this.#ended = ended;
    this.#left = left;
    client.on("link", (report) => this.#linkChanged(report));
    client.on("presence", (presence) => this.#present(presence));
  }

  /**
   * From a login to a live link. `ended` is called once with the reason when it ends; `left` with
   * secrets that would end with it, though nobody else has them. Rejects with a Trouble.
   */
  static async start(
    login: LoginAnswer,
    ended: (notice: Trouble) => void,
    left: (secrets: ReadonlyMap<string, FoundSecret>) => void,
  ): Promise<Model> {
    const token = login.access_token;
    const session = await restOf(token).ask("SessionAnswer", "POST", "/auth/session");
    const sessionToken = session.session_token;
    const url = new URL(".", document.baseURI).href;
    try {
      const client = await connect({ url, sessionToken, presence: true });
      const model = new Model(login, sessionToken, client, ended, left);
      void model.listAgents();
      return model;
    } catch (error) {
      throw troubleOfCall(error);
    }
  }

  /** Calls `fn` after every change. Returns a function that stops it. */
  watch(fn: () => void): () => void {
    this.#watchers.add(fn);
    return () => this.#watchers.delete(fn);
  }

  /** Ends the login on the relay too, and clears all state. */
  async stop(): Promise<void> {
    this.#forget();
    const rest = this.#rest;
    this.#rest = restOf(null);
    this.#sessionToken = "";
    await rest.tell("POST", "/auth/logout").catch(() => undefined);
  }

  async listAgents(): Promise<void> {
    const turn = ++this.#reading;
    this.#listedAt = performance.now();
    const found = new Map<string, Agent>();
    const rest = restOf(this.#sessionToken);
    let isCut = false;
    this.#changed.clear();
    try {
      for await (const page of rest.pages("AgentPage", "/agents", { limit: AGENTS_LIMIT })) {
        if (turn !== this.#reading) return;
        for (const agent of page.items) found.set(agent.agent_id, this.#withPresence(agent));
        for (const [id, agent] of this.#changed) {
          if (agent === null) found.delete(id);
          else found.set(id, this.#withPresence(agent));
        }
        isCut = page.next_cursor !== null;
        const isLast = !isCut || found.size >= MAX_AGENTS;
        // The first list grows as it arrives; a later one replaces it as a whole.
        if (!this.loaded || isLast) this.agents = [...found.values()];
        this.#draw();
        if (isLast) break;
        this.#changed.clear();
      }
      this.isCut = isCut;
      this.agentsTrouble = null;
      this.loaded = true;
    } catch (error) {
      if (turn !== this.#reading) return;
      this.agentsTrouble = this.#failed(error);
    }
    this.#draw();
  }

  list(change: Partial<AgentListing>): void {
    this.listing = { ...this.listing, ...change };
    this.#draw();
  }

  /** Uses the login. `id`: proposed, or null. Rejects with a Trouble. */
  async createAgent(name: string, id: string | null): Promise<AgentCreated> {
    const body = id === null ? { name } : { name, agent_id: id };
    const made = await this.#rest.ask("AgentCreated", "POST", "/agents", body);
    const { api_token: _, ...agent } = made;
    this.#keep(agent);
    return made;
  }

  /** Uses the login, like the next two. Rejects with a Trouble. */
  async renameAgent(agentId: string, name: string): Promise<void> {
    const path = agentPath(agentId);
    await this.#keepAnswer(agentId, this.#rest.ask("Agent", "PATCH", path, { name }));
  }

  /** The new relay token, which the relay tells only once. Rejects with a Trouble. */
  async rotateAgent(agentId: string): Promise<string> {
    const path = `${agentPath(agentId)}/rotate-token`;
    return (await this.#rest.ask("RotateAgentAnswer", "POST", path)).api_token;
  }

  /** Rejects with a Trouble. */
  async deleteAgent(agentId: string): Promise<void> {
    try {
      await this.#rest.tell("DELETE", agentPath(agentId));
    } catch (error) {
      // By another program, or by a try whose answer was lost.
      if ((error as Trouble).code !== "NOT_FOUND") throw error;
    }
    this.#drop(agentId);
    this.#close(agentId);
    this.secrets.delete(agentId);
    this.unkept.delete(agentId);
    this.#draw();
  }

  /** Uses the login, like the next two. */
  keys(cursor: string | null): Promise<AccessKeyPage> {
    const path = withQuery("/account/keys", { limit: PAGE_LIMIT, cursor });
    return this.#rest.ask("AccessKeyPage", "GET", path);
  }

  /** The key is answered only once. Rejects with a Trouble. */
  addKey(body: AccessKeyCreate): Promise<AccessKeyCreated> {
    return this.#rest.ask("AccessKeyCreated", "POST", "/account/keys", body);
  }

  removeKey(id: string): Promise<void> {
    return this.#rest.tell("DELETE", `/account/keys/${encodeURIComponent(id)}`);
  }

  /** Calls each agent whose secret is in this page; the others are skipped. Never rejects. */
  async callMany(
    ids: readonly string[],
    method: string,
    params: unknown,
    options: FleetCallOptions,
  ): Promise<void> {
    const stop = new AbortController();
    this.#stopMany = stop;
    const outcomes: FleetOutcome[] = [];
    const told = (isRunning: boolean, trouble: Trouble | null = null): void => {
      this.many = { total: ids.length, outcomes, isRunning, trouble };
      this.#draw();
    };
    told(true);
    try {
      for (const id of ids) {
        const secret = this.secrets.get(id);
        if (secret === undefined || this.opened.has(id)) continue;
        this.#client.agent(id, secret.agentToken, optionsOf(secret));
      }
      const given = { ...options, signal: stop.signal };
      for await (const one of this.#client.fleet(ids).call(method, params, given)) {
        outcomes.push(one);
        this.#draw();
      }
      told(false);
    } catch (error) {
      told(false, troubleOfCall(error));
    }
  }

  /** Calls no more of the many agents; what has been sent is completed. */
  stopMany(): void {
    this.#stopMany?.abort();
  }

  /** The secrets of a keyring, for the agents that are looked at later. */
  addSecrets(found: ReadonlyMap<string, FoundSecret>): void {
    for (const [agentId, secret] of found) {
      // An older keyring may have one of an earlier agent of that name, or from before a change.
      const isBetter = this.unkept.has(agentId) || this.opened.has(agentId);
      if (!isBetter) this.secrets.set(agentId, secret);
    }
    this.#draw();
  }

  /** A secret that was made in this page, and that a device may have. */
  addMade(agentId: string, secret: FoundSecret): void {
    // The login has ended while the device was set up.
    if (this.#isOver) return this.#left(new Map([[agentId, secret]]));
    this.secrets.set(agentId, secret);
    this.unkept.add(agentId);
    this.#draw();
  }

  /** The user has the agent's secret in another place, too. */
  keepsElsewhere(agentId: string): void {
    this.unkept.delete(agentId);
    this.#draw();
  }

  /** The row of one agent, fetched if it is not on the list. Rejects with a Trouble. */
  async findAgent(agentId: string): Promise<Agent> {
    const listed = this.agents.find(({ agent_id }) => agent_id === agentId);
    return listed ?? (await this.#read("Agent", agentPath(agentId)));
  }

  isOnline(agent: Agent): boolean {
    return this.#presence.get(agent.agent_id)?.online ?? agent.online;
  }

  releases(cursor: string | null): Promise<ReleasePage> {
    return this.#read("ReleasePage", "/releases", { limit: PAGE_LIMIT, cursor });
  }

  /** Uses the login, like everything that only admins may do. */
  changeRelease(id: string, body: ReleasePatch): Promise<Release> {
    return this.#rest.ask("Release", "PATCH", `/releases/${id}`, body);
  }

  deleteDraft(id: string): Promise<void> {
    return this.#rest.tell("DELETE", `/releases/${id}`);
  }

  /** Uses the login, which lasts an hour: a session has no access to it. */
  async audit(cursor: string | null): Promise<AuditPage> {
    const rest = this.#rest;
    if (cursor === null) {
      const path = withQuery("/admin/users", { limit: USERS_LIMIT });
      const { items } = await rest.ask("AdminUserPage", "GET", path);
      for (const { id, username } of items) this.usernames.set(id, username);
    }
    const path = withQuery("/admin/audit", { limit: PAGE_LIMIT, cursor });
    const page = await rest.ask("AuditPage", "GET", path);
    for (const { subject, detail } of page.items) {
      // Of users who are gone.
      if (typeof detail.username === "string") this.usernames.set(subject, detail.username);
    }
    return page;
  }

  /**
   * Verifies a secret by a sealed call and listens to the agent's events from then on. Rejects with
   * a Trouble. The secret is used for the keys and never leaves the page.
   */
  async open(agentId: string, secret: FoundSecret): Promise<void> {
    try {
      const opened = await this.#ask(agentId, secret);
      if (!this.opened.has(agentId)) this.#listen(agentId, secret, opened);
    } catch (error) {
      throw troubleOfCall(error);
    }
  }

  async #ask(agentId: string, secret: FoundSecret): Promise<Opened> {
    const link = this.#client.agent(agentId, secret.agentToken, optionsOf(secret));
    const info = await link.call("system.info", undefined, { timeoutMs: 15_000 });
    return { link, info: readInfo(info) };
  }

  #listen(agentId: string, secret: FoundSecret, opened: Opened): void {
    const { link } = opened;
    this.#close(agentId);
    this.secrets.set(agentId, secret);
    this.opened.set(agentId, opened);
    this.#listening.set(agentId, [
      link.on("event", (what, data) => {
        // The log has a place of its own.
        if (what !== "system.logged") this.#hear({ agentId, kind: "event", what, data });
      }),
      link.on("gap", (count, of) => {
        this.#hear({ agentId, kind: "missing", what: `${count} ${of} were lost` });
      }),
      link.on("reopened", (reason) => {
        this.#hear({ agentId, kind: "missing", what: `events may be missing: ${reason}` });
      }),
    ]);
    this.#draw();
  }

  #close(agentId: string): void {
    for (const stop of this.#listening.get(agentId) ?? []) stop();
    this.#listening.delete(agentId);
    this.opened.delete(agentId);
  }

  /**
   * The same once the agent, which may be starting, is online. Rejects with a Trouble if it is not
   * in time, or when `signal` is aborted with one.
   */
  async openSoon(
    agentId: string,
    secret: FoundSecret,
    limitMs: number,
    signal: AbortSignal,
  ): Promise<SystemInfo> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      try {
        await this.open(agentId, secret);
        return this.opened.get(agentId)?.info ?? {};
      } catch (error) {
        const isLate = performance.now() > deadline;
        if (isLate || !PASSING.includes((error as Trouble).code)) throw error;
      }
      await new Promise((done) => setTimeout(done, POLL_MS));
      signal.throwIfAborted();
    }
  }

  /**
   * Gives the agent a secret that the user has saved, and uses it from then on; it may be sent
   * again. `pushKey`: of a device that has one; otherwise "". Rejects with a Trouble; the agent may
   * have either secret then.
   */
  async rekey(agentId: string, sent: Renewal, pushKey: string): Promise<void> {
    const { id, renewed } = sent;
    const secret = renewed.agentToken;
    const handle = (one: FoundSecret) =>
      this.#client.agent(agentId, one.agentToken, optionsOf(one));
    try {
      if (!(await hasSecret(handle(renewed)))) {
        const present = handle(this.secrets.get(agentId) as FoundSecret);
        const state = await secretState(present);
        const prove = (serial: number) => ({
          serial,
          proof: rekeyProof(nobleChachaSuite(), pushKey, agentId, serial, sha256Hex(secret)),
        });
        const proven = pushKey === "" ? {} : prove(nextSerial(agentId, state.serial));
        await sendSecret(present, { secret, id, ...proven });
        if (!(await hasSecret(handle(renewed))))
          throw new CallError("TIMED_OUT", `${agentId} has not answered under its new secret`);
      }
      this.#listen(agentId, renewed, await this.#ask(agentId, renewed));
    } catch (error) {
      throw troubleOfCall(error);
    }
  }

  clearHeard(): void {
    this.heard = [];
    this.#draw();
  }

  async #read<Name extends AnswerName>(answer: Name, path: string, query: Query = {}) {
    try {
      return await restOf(this.#sessionToken).ask(answer, "GET", withQuery(path, query));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** An error of REST as the page shows it; one that ends the session ends the page's login too. */
  #failed(error: unknown): Trouble {
    const trouble =
      error instanceof Trouble ? error : new Trouble(String(error), fixOf("INTERNAL"), "INTERNAL");
    if (trouble.status === 401) this.#end(trouble);
    return trouble;
  }

  #linkChanged(report: LinkReport): void {
    const wasAway = this.link.state !== "online";
    this.link = report;
    if (report.state === "refused") this.#end(troubleOfCall(report.reason));
    if (report.state === "online" && wasAway) {
      this.#presence.clear(); // The relay sends all online agents again.
      void this.listAgents();
    }
    this.#draw();
  }

  #present(presence: Presence): void {
    const { agentId, online, at } = presence;
    this.#presence.set(agentId, presence);
    const known = this.agents.find(({ agent_id }) => agent_id === agentId);
    if (known?.online !== online) this.#refreshSoon(agentId);
    if (known === undefined || known.online === online) return;
    this.agents = this.agents.map((agent) =>
      agent === known ? { ...agent, online, last_seen: at } : agent,
    );
    const word = online ? "online" : "offline";
    this.announcement = `${known.name} is ${word}`;
    this.#hear({ agentId, kind: "presence", what: word });
  }

  #withPresence(agent: Agent): Agent {
    const said = this.#presence.get(agent.agent_id);
    return said === undefined ? agent : { ...agent, online: said.online };
  }

  #refreshSoon(agentId: string): void {
    if (!this.loaded) return;
    this.#stale.add(agentId);
    this.#refreshTimer ??= setTimeout(() => void this.#refresh(), REFRESH_DELAY_MS);
  }

  async #refresh(): Promise<void> {
    this.#refreshTimer = undefined;
    const ids = [...this.#stale];
    this.#stale.clear();
    if (ids.length > MAX_SINGLE_LOOKUPS) {
      const wait = this.#listedAt + RELIST_MS - performance.now();
      if (wait <= 0) await this.listAgents();
      else this.#refreshTimer ??= setTimeout(() => void this.#relist(), wait);
      return;
    }
    for (const id of ids) {
      try {
        await this.#keepAnswer(id, this.#read("Agent", agentPath(id)));
      } catch (error) {
        if ((error as Trouble).code === "NOT_FOUND") this.#drop(id);
      }
    }
  }

  /** Keeps what the relay answers of an agent, unless it is removed meanwhile. */
  async #keepAnswer(agentId: string, answer: Promise<Agent>): Promise<void> {
    const drops = this.#drops.get(agentId);
    const agent = await answer;
    if (this.#drops.get(agentId) === drops) this.#keep(agent);
  }

  /** It is not on the relay any more. */
  #drop(agentId: string): void {
    this.#drops.set(agentId, (this.#drops.get(agentId) ?? 0) + 1);
    this.#changed.set(agentId, null);
    this.agents = this.agents.filter(({ agent_id }) => agent_id !== agentId);
    this.#draw();
  }

  /** In the list from now on, as the relay just described it. */
  #keep(fresh: Agent): void {
    const agent = this.#withPresence(fresh);
    this.#changed.set(agent.agent_id, agent);
    const index = this.agents.findIndex(({ agent_id }) => agent_id === agent.agent_id);
    this.agents =
      index < 0
        ? [...this.agents, agent]
        : this.agents.map((was, i) => (i === index ? agent : was));
    this.#draw();
  }

  async #relist(): Promise<void> {
    this.#refreshTimer = undefined;
    this.#stale.clear();
    await this.listAgents();
  }

  #hear(heard: Omit<Heard, "id" | "at">): void {
    const entry = { ...heard, id: ++this.#heardCount, at: new Date() };
    this.heard = [entry, ...this.heard].slice(0, MAX_HEARD);
    this.#draw();
  }

  #draw(): void {
    this.#drawTimer ??= setTimeout(() => {
      this.#drawTimer = undefined;
      for (const fn of this.#watchers) fn();
    }, DRAW_DELAY_MS);
  }

  #end(notice: Trouble): void {
    const tell = this.#ended;
    const left = [...this.secrets].filter(([agentId]) => this.unkept.has(agentId));
    this.#forget();
    if (left.length > 0) this.#left(new Map(left));
    tell(notice);
  }

  #forget(): void {
    this.#isOver = true;
    this.#ended = () => undefined;
    clearTimeout(this.#refreshTimer);
    clearTimeout(this.#drawTimer);
    this.#watchers.clear();
    this.opened.clear();
    this.secrets.clear();
    this.unkept.clear();
    this.heard = [];
    this.stopMany();
    this.#client.close();
  }
}

/** An error of the SDK as the page shows it. */
export const troubleOfCall = (error: unknown): Trouble => {
  if (error instanceof Trouble) return error;
  const { message: said, fix: told } = error as Partial<BoardTrouble>;
  // Of the other bundle, whose classes are its own.
  if (said !== undefined && told !== undefined) return new Trouble(said, told, "");
  if (!(error instanceof CallError)) {
    return new Trouble(`A fault of this page: ${String(error)}`, "Reload the page.", "");
  }
  const { code, message, relayCode, remote } = error;
  const text = remote === undefined ? message : `${remote.message} (${remote.code})`;
  return new Trouble(text, fixOf(relayCode ?? "") || fixOf(code), relayCode ?? code);
};
