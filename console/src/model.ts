/**
 * The model of a logged-in page, kept up to date by messages from the relay and the agents: the
 * agents with their presence, those whose secret was entered, and their events.
 *
 * The access token, the session token and the secrets are kept in this object's memory only.
 */
import {
  type Agent as AgentLink,
  CallError,
  type Client,
  connect,
  type LinkReport,
  type Presence,
} from "@blindrelay/client-sdk/browser";
import { type AnswerName, type Query, withQuery } from "@blindrelay/client-sdk/rest/core";
import type {
  Agent,
  AgentPage,
  AuditPage,
  LoginAnswer,
  Release,
  ReleasePage,
  ReleasePatch,
} from "@blindrelay/protocol/schema/rest";
import { fixOf } from "./fixes.ts";
import { restOf, Trouble } from "./rest.ts";

/** Rows that a list shows at first. */
const PAGE_LIMIT = "100";
/** Events are for display, not for storage. */
const MAX_HEARD = 300;
/** Simultaneous changes, for example after a relay's restart, are drawn together. */
const DRAW_DELAY_MS = 50;
/** Agents that went online are queried together: their firmware may have changed. */
const REFRESH_DELAY_MS = 300;
/** With more changed agents than this, fetching the whole list is cheaper. */
const MAX_SINGLE_LOOKUPS = 5;

export interface Heard {
  readonly id: number;
  readonly at: Date;
  readonly agentId: string;
  readonly kind: "presence" | "event" | "missing";
  readonly what: string;
  readonly data?: unknown;
}

export interface AgentFilter {
  readonly name: string;
  readonly online: "" | "true" | "false";
}

/** An agent's own description; any part may be missing. */
export interface SystemInfo {
  readonly name?: string;
  readonly sdk_version?: string;
  readonly runtime?: string;
  readonly free_memory?: number;
  readonly uptime_s?: number;
  readonly methods?: readonly string[];
}

/** An agent whose secret was entered and verified. */
export interface Opened {
  readonly link: AgentLink;
  readonly info: SystemInfo;
}

export class Model {
  readonly user: LoginAnswer["user"];
  agents: Agent[] = [];
  /** Null: the list is complete. */
  moreAgents: string | null = null;
  /** Null until the first list has arrived. */
  agentsTrouble: Trouble | null = null;
  loaded = false;
  filter: AgentFilter = { name: "", online: "" };
  heard: Heard[] = [];
  readonly opened = new Map<string, Opened>();
  link: LinkReport = { state: "online" };
  /** For screen readers: the last change of presence. */
  announcement = "";

  #accessToken: string;
  #sessionToken: string;
  #client: Client;
  #ended: (notice: Trouble) => void;
  readonly #watchers = new Set<() => void>();
  #drawTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #stale = new Set<string>();
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;
  /** The number of the newest request for the list; answers to older ones are dropped. */
  #listing = 0;
  #heardCount = 0;
  /** The relay's latest presence of each agent, listed or not. */
  readonly #presence = new Map<string, Presence>();

  private constructor(
    login: LoginAnswer,
    sessionToken: string,
    client: Client,
    ended: (notice: Trouble) => void,
  ) {
    this.user = { ...login.user, api_token: null }; // The page does not need the account's token.
    this.#accessToken = login.access_token;
    this.#sessionToken = sessionToken;
    this.#client = client;
    this.#ended = ended;
    client.on("link", (report) => this.#linkChanged(report));
    client.on("presence", (presence) => this.#present(presence));
  }

  /**
   * From a login to a live link. `ended` is called once with the reason when it ends. Rejects with
   * a Trouble.
   */
  static async start(login: LoginAnswer, ended: (notice: Trouble) => void): Promise<Model> {
    const token = login.access_token;
    const session = await restOf(token).ask("SessionAnswer", "POST", "/auth/session");
    const sessionToken = session.session_token;
    const url = new URL(".", document.baseURI).href;
    try {
      const client = await connect({ url, sessionToken, presence: true });
      const model = new Model(login, sessionToken, client, ended);
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
    const token = this.#accessToken;
    this.#accessToken = "";
    this.#sessionToken = "";
    await restOf(token)
      .tell("POST", "/auth/logout")
      .catch(() => undefined);
  }

  async listAgents(filter = this.filter): Promise<void> {
    this.filter = filter;
    const turn = ++this.#listing;
    try {
      const page = await this.#agentPage(null);
      if (turn !== this.#listing) return;
      this.agents = page.items.map((agent) => this.#withPresence(agent));
      this.moreAgents = page.next_cursor;
      this.agentsTrouble = null;
      this.loaded = true;
    } catch (error) {
      if (turn !== this.#listing) return;
      this.agentsTrouble = this.#failed(error);
    }
    this.#draw();
  }

  async listMoreAgents(): Promise<void> {
    const turn = ++this.#listing;
    try {
      const page = await this.#agentPage(this.moreAgents);
      if (turn !== this.#listing) return;
      const known = new Set(this.agents.map(({ agent_id }) => agent_id));
      const added = page.items.filter(({ agent_id }) => !known.has(agent_id));
      this.agents = [...this.agents, ...added.map((agent) => this.#withPresence(agent))];
      this.moreAgents = page.next_cursor;
    } catch (error) {
      this.agentsTrouble = this.#failed(error);
    }
    this.#draw();
  }

  /** The row of one agent, fetched if it is not on the list. Rejects with a Trouble. */
  async findAgent(agentId: string): Promise<Agent> {
    const listed = this.agents.find(({ agent_id }) => agent_id === agentId);
    return listed ?? (await this.#read("Agent", `/agents/${encodeURIComponent(agentId)}`));
  }

  isOnline(agent: Agent): boolean {
    return this.#presence.get(agent.agent_id)?.online ?? agent.online;
  }

  releases(cursor: string | null): Promise<ReleasePage> {
    return this.#read("ReleasePage", "/releases", { limit: PAGE_LIMIT, cursor });
  }

  /** Uses the login, like everything that only admins may do. */
  changeRelease(id: string, body: ReleasePatch): Promise<Release> {
    return restOf(this.#accessToken).ask("Release", "PATCH", `/releases/${id}`, body);
  }

  deleteDraft(id: string): Promise<void> {
    return restOf(this.#accessToken).tell("DELETE", `/releases/${id}`);
  }

  /** Uses the login, which lasts an hour: a session has no access to it. */
  async audit(cursor: string | null): Promise<AuditPage> {
    const path = withQuery("/admin/audit", { limit: PAGE_LIMIT, cursor });
    return await restOf(this.#accessToken).ask("AuditPage", "GET", path);
  }

  /**
   * Verifies a secret by a sealed call and listens to the agent's events from then on. Rejects with
   * a Trouble. The secret is used for the keys and never leaves the page.
   */
  async open(agentId: string, secret: string, version: "1" | "2"): Promise<void> {
    try {
      const link = this.#client.agent(agentId, secret, { version });
      const info = await link.call<SystemInfo>("system.info", undefined, { timeoutMs: 15_000 });
      if (this.opened.has(agentId)) return;
      this.opened.set(agentId, { link, info });
      link.on("event", (what, data) => this.#hear({ agentId, kind: "event", what, data }));
      link.on("gap", (count, of) => {
        this.#hear({ agentId, kind: "missing", what: `${count} ${of} were lost` });
      });
      link.on("reopened", (reason) => {
        this.#hear({ agentId, kind: "missing", what: `events may be missing: ${reason}` });
      });
      this.#draw();
    } catch (error) {
      throw troubleOfCall(error);
    }
  }

  clearHeard(): void {
    this.heard = [];
    this.#draw();
  }

  #agentPage(cursor: string | null): Promise<AgentPage> {
    const { name, online } = this.filter;
    return this.#read("AgentPage", "/agents", { limit: PAGE_LIMIT, name, online, cursor });
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
    const listed = new Set(this.agents.map(({ agent_id }) => agent_id));
    if (ids.length > MAX_SINGLE_LOOKUPS || ids.some((id) => !listed.has(id))) {
      if (this.moreAgents === null) await this.listAgents();
      return;
    }
    for (const id of ids) {
      const fresh = await this.#read("Agent", `/agents/${encodeURIComponent(id)}`).catch(
        () => null,
      );
      if (fresh === null) continue;
      this.agents = this.agents.map((agent) =>
        agent.agent_id === id ? this.#withPresence(fresh) : agent,
      );
      this.#draw();
    }
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
    this.#forget();
    tell(notice);
  }

  #forget(): void {
    this.#ended = () => undefined;
    clearTimeout(this.#refreshTimer);
    clearTimeout(this.#drawTimer);
    this.#watchers.clear();
    this.opened.clear();
    this.heard = [];
    this.#client.close();
  }
}

/** An error of the SDK as the page shows it. */
export const troubleOfCall = (error: unknown): Trouble => {
  if (error instanceof Trouble) return error;
  if (!(error instanceof CallError)) {
    return new Trouble(`A fault of this page: ${String(error)}`, "Reload the page.", "");
  }
  const { code, message, relayCode, remote } = error;
  const text = remote === undefined ? message : `${remote.message} (${remote.code})`;
  return new Trouble(text, fixOf(relayCode ?? "") || fixOf(code), relayCode ?? code);
};
