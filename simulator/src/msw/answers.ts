/** The REST answers of a relay in memory, and their access rules. */
import {
  type ErrorCode,
  MAX_METADATA_BYTES,
  makeToken,
  SESSION_MAX_REQUESTS,
  tokenKind,
} from "@blindrelay/protocol";
import type { Agent, AgentCreate, AgentPatch } from "@blindrelay/protocol/schema/rest";
import {
  LABEL_KEY_PATTERN,
  matchesSelector,
  parseSelector,
  type Selector,
} from "@blindrelay/protocol/selector";
import { type AgentRecord, randomBytes, USER } from "../fake-device/directory.ts";
import type { MemoryRelay } from "../fake-device/memory-relay.ts";
import type { Operation } from "./operation.ts";

/** A request of valid shape. */
export interface Request {
  readonly url: URL;
  readonly params: Readonly<Record<string, string>>;
  readonly token: string | null;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** Answered with a problem document. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly object[] | null;

  constructor(code: ErrorCode, detail: string, errors: readonly object[] | null = null) {
    super(detail);
    this.code = code;
    this.errors = errors;
  }
}

export interface Answers {
  /** Throws a Refusal for credentials that the operation does not accept. */
  admit(operation: Operation, token: string | null): void;
  /** The answer's body; null for none. Throws a Refusal. */
  answer(operation: Operation, request: Request): unknown;
}

const LABEL_KEY = new RegExp(LABEL_KEY_PATTERN);
const LOGIN_TTL_S = 3600;
const PAGE_LIMIT = 50;

const selectorOf = (text: string): Selector => {
  try {
    return parseSelector(text);
  } catch (error) {
    const message = (error as Error).message;
    const errors = [{ path: "/where", in: "querystring", message }];
    throw new Refusal("VALIDATION_FAILED", "That is no selector.", errors);
  }
};

const invalidBody = (paths: readonly string[], message: string): Refusal => {
  const errors = paths.map((path) => ({ path, in: "body", message }));
  return new Refusal("VALIDATION_FAILED", "The request does not have the right shape", errors);
};

/** Throws a Refusal for what an OpenAPI document cannot say of an agent. */
const checkAgent = ({ labels = {}, metadata = {} }: AgentPatch): void => {
  const wrong = Object.keys(labels).filter((key) => !LABEL_KEY.test(key));
  if (wrong.length > 0) {
    const paths = [...wrong.map((key) => `/labels/${key}`), "/labels"];
    throw invalidBody(paths, `the key of a label is ${LABEL_KEY_PATTERN}`);
  }
  if (new TextEncoder().encode(JSON.stringify(metadata)).length > MAX_METADATA_BYTES) {
    throw invalidBody(["/metadata"], `must have at most ${MAX_METADATA_BYTES} bytes as JSON text`);
  }
};

/** Where a page ends: lists begin with the oldest. */
type Position = Pick<Agent, "created_at" | "agent_id">;

const byAge = (a: Position, b: Position): number =>
  a.created_at < b.created_at || (a.created_at === b.created_at && a.agent_id < b.agent_id)
    ? -1
    : Number(a.agent_id !== b.agent_id);

/** Opaque, and good for a page after an agent that is gone, as the relay's are. */
const cursorOf = ({ created_at, agent_id }: Position): string =>
  btoa(JSON.stringify([created_at, agent_id]));

const readCursor = (cursor: string): Position => {
  try {
    const [created_at, agent_id] = JSON.parse(atob(cursor)) as unknown[];
    if (typeof created_at === "string" && typeof agent_id === "string") {
      return { created_at, agent_id };
    }
  } catch {
    // It is refused below.
  }
  const errors = [{ path: "/cursor", in: "querystring", message: "must be a next_cursor" }];
  throw new Refusal("VALIDATION_FAILED", "That is not a cursor of this list.", errors);
};

export const answersOf = (relay: MemoryRelay, password: string): Answers => {
  const { directory } = relay;
  /** The access token of the last login; null before it and after a logout. */
  let loginToken: string | null = null;
  const user = {
    id: USER.id,
    username: USER.username,
    role: "admin",
    totp_enabled: false,
    created_at: directory.createdAt,
  };

  const holderOf = (token: string): string | null => {
    if (token === directory.accountToken) return "account";
    if (token === loginToken) return "login";
    return directory.clientSession(token) === undefined ? null : "client_session";
  };

  const agentAnswer = (record: AgentRecord): Agent => ({
    agent_id: record.agentId,
    name: record.name,
    online: relay.isOnline(record.agentId),
    last_seen: record.lastSeen,
    runtime: record.runtime,
    firmware_version: record.firmwareVersion,
    created_at: record.createdAt,
    labels: record.labels,
    metadata: record.metadata,
  });

  const own = ({ params }: Request): AgentRecord => {
    const record = directory.agents.get(params.agent_id ?? "");
    if (record === undefined) {
      throw new Refusal("NOT_FOUND", "This agent does not exist, or is not yours.");
    }
    return record;
  };

  /** By `operationId`; other operations are answered with their example. */
  const stateful: Record<string, (request: Request) => unknown> = {
    postAuthLogin: ({ body }) => {
      const given = body as { username: string; password: string };
      if (given.username !== USER.username || given.password !== password) {
        throw new Refusal("INVALID_CREDENTIALS", "User name, password or code are not right.");
      }
      loginToken = makeToken("login", randomBytes(32));
      return {
        access_token: loginToken,
        token_type: "Bearer",
        expires_in: LOGIN_TTL_S,
        user: { ...user, api_token: directory.accountToken },
      };
    },
    postAuthLogout: () => {
      loginToken = null;
      return null;
    },
    postAuthSession: () => {
      const { token, expiresAtMs } = directory.addSession("client");
      return {
        session_token: token,
        expires_at: new Date(expiresAtMs).toISOString(),
        expires_in: Math.ceil((expiresAtMs - Date.now()) / 1000),
        max_requests: SESSION_MAX_REQUESTS,
      };
    },
    postAuthTokenRotate: () => {
      directory.rotateAccount();
      relay.endClients(USER.id);
      return { api_token: directory.accountToken, rotated_at: new Date().toISOString() };
    },
    getAccount: () => user,
    postAgents: ({ body }) => {
      checkAgent(body as AgentCreate);
      const { agent_id, name, labels, metadata } = body as AgentCreate;
      const id = agent_id ?? `agent-${crypto.randomUUID().slice(0, 8)}`;
      if (directory.agents.has(id)) {
        throw new Refusal("CONFLICT", "That agent_id is taken: propose another, or none.");
      }
      const record = directory.addAgent(id, name, metadata);
      record.labels = labels ?? {};
      return { ...agentAnswer(record), api_token: record.relayToken };
    },
    getAgents: ({ query }) => {
      const { limit = PAGE_LIMIT, cursor, online, name, runtime, firmware_version, where } = query;
      const selector = where === undefined ? [] : selectorOf(where as string);
      const after = cursor === undefined ? null : readCursor(cursor as string);
      const wanted = [...directory.agents.values()]
        .map(agentAnswer)
        .sort(byAge)
        .filter(
          (agent) =>
            (after === null || byAge(after, agent) < 0) &&
            (online === undefined || agent.online === online) &&
            (name === undefined || agent.name.startsWith(name as string)) &&
            (runtime === undefined || agent.runtime?.startsWith(runtime as string) === true) &&
            (firmware_version === undefined || agent.firmware_version === firmware_version) &&
            matchesSelector(selector, agent),
        );
      const items = wanted.slice(0, limit as number);
      const isLast = items.length === wanted.length;
      return { items, next_cursor: isLast ? null : cursorOf(items.at(-1) as Agent) };
    },
    getAgentsByAgentId: (request) => agentAnswer(own(request)),
    patchAgentsByAgentId: (request) => {
      const record = own(request);
      checkAgent(request.body as AgentPatch);
      const { name, labels, metadata } = request.body as AgentPatch;
      record.name = name ?? record.name;
      record.labels = labels ?? record.labels;
      record.metadata = metadata ?? record.metadata;
      return agentAnswer(record);
    },
    deleteAgentsByAgentId: (request) => {
      const { agentId } = own(request);
      directory.removeAgent(agentId);
      relay.forgetAgent(agentId);
      return null;
    },
    postAgentsByAgentIdRotateToken: (request) => {
      const record = own(request);
      directory.rotateAgent(record);
      relay.endAgent(record.agentId);
      const { agentId: agent_id, relayToken: api_token } = record;
      return { agent_id, api_token, rotated_at: new Date().toISOString() };
    },
    getAgentsByAgentIdExport: (request) => {
      const { agentId: agent_id, relayToken: api_token, createdAt: created_at } = own(request);
      const relay_url = `${request.url.origin.replace(/^http/, "ws")}/wss`;
      return { agent_id, api_token, relay_url, created_at };
    },
  };

  return {
    admit: ({ credentials }, token) => {
      if (credentials.length === 0) return;
      if (token === null) throw new Refusal("AUTH_REQUIRED", 'Send "Authorization: Bearer".');
      const holder = holderOf(token);
      if (holder === null) {
        const kind = tokenKind(token);
        if (kind === "agent")
          throw new Refusal("WRONG_TOKEN_KIND", "An agent's token is not for this.");
        throw new Refusal("INVALID_TOKEN", "Invalid token");
      }
      if (!credentials.includes(holder)) {
        throw new Refusal("FORBIDDEN", "These credentials are valid but may not do this.");
      }
    },
    answer: (operation, request) => {
      const answer = stateful[operation.id];
      return answer === undefined ? operation.answer : answer(request);
    },
  };
};
