/**
 * `/agents`: the devices of an account, their relay tokens and what a device needs to connect.
 */
import { AGENT_ID_PATTERN, MAX_METADATA_BYTES } from "@blindrelay/protocol";
import {
  type Agent,
  AgentCreate,
  AgentCreated,
  AgentExport,
  AgentPage,
  AgentParams,
  AgentPatch,
  AgentQuery,
  Agent as AgentSchema,
  EnvironmentFile,
  EspruinoModule,
  EXPORT_MEDIA_TYPES,
  ExportQuery,
  IdempotencyHeaders,
  ModdableManifest,
  NoContent,
  RotateAgentAnswer,
} from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import { noteLabels, sees } from "../../control/access-keys.ts";
import {
  createAgent,
  deleteAgent,
  exportAgentToken,
  makeAgentId,
  rotateAgentToken,
} from "../../control/agents.ts";
import { changeStore } from "../../control/change-store.ts";
import { queueOf } from "../../control/credentials.ts";
import { holdQuotas } from "../../control/quota-check.ts";
import { hashToken } from "../../control/secrets.ts";
import { changeAgent, findAgent } from "../../store/agents.ts";
import type { AgentRow } from "../../store/tables.ts";
import { currentToken } from "../../store/tokens.ts";
import { AGENT_READERS, AGENT_WRITERS, credentialOf, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { IDEMPOTENCY_PROBLEMS, type IsTrue, idempotently } from "../base/idempotency.ts";
import { jsonText } from "../base/json-text.ts";
import { HttpProblem, invalidBody, notFound } from "../base/problem.ts";
import { httpBase, relayUrl } from "../base/relay-url.ts";
import { timestamp } from "../base/time.ts";
import { exportFormat, exportText } from "./agent-export.ts";
import { agentPage } from "./agent-list.ts";

const AGENT_ID = new RegExp(AGENT_ID_PATTERN);

export const agentRoutes = (app: App, context: HttpContext): void => {
  const reading = requires(context, AGENT_READERS);
  const writing = requires(context, AGENT_WRITERS);
  const answer = (row: AgentRow) => agentAnswer(context, row);

  app.post(
    "/agents",
    {
      onRequest: writing,
      config: { problems: ["CONFLICT", "QUOTA_EXCEEDED", ...IDEMPOTENCY_PROBLEMS] },
      schema: {
        summary: "Make an agent and its relay token",
        headers: IdempotencyHeaders,
        body: AgentCreate,
        response: { 201: AgentCreated },
      },
    },
    (request, reply) => {
      const make = async () => {
        const { name, agent_id, labels, metadata } = request.body;
        const agentId = agent_id ?? makeAgentId(name);
        const labelsText = JSON.stringify(labels ?? {});
        demandSeen(request, { agent_id: agentId, labels: labelsText });
        const made = await createAgent(context, credentialOf(request), {
          name,
          agentId,
          labels: labelsText,
          metadata: metadataText(metadata ?? {}),
        });
        if (made === null) {
          throw new HttpProblem("CONFLICT", "That agent_id is taken: propose another, or none.");
        }
        reply.code(201).header("location", `/api/v1/agents/${made.row.agent_id}`);
        return { ...answer(made.row), api_token: made.token };
      };
      return idempotently(context, request, reply, make, isCurrent(context, request));
    },
  );

  app.get(
    "/agents",
    {
      onRequest: reading,
      schema: {
        summary: "Your agents, oldest first",
        querystring: AgentQuery,
        response: { 200: AgentPage },
      },
    },
    async (request) => {
      const credential = credentialOf(request);
      await context.settle();
      const pause = () => request.server.requestLimits.pause(queueOf(credential));
      const page = await agentPage(context, credential, request.query, pause);
      return { items: page.rows.map(answer), next_cursor: page.nextCursor };
    },
  );

  app.get(
    "/agents/:agent_id",
    {
      onRequest: reading,
      schema: { summary: "One agent", params: AgentParams, response: { 200: AgentSchema } },
    },
    async (request) => {
      await context.settle();
      return answer(await ownAgent(context, request));
    },
  );

  app.patch(
    "/agents/:agent_id",
    {
      onRequest: writing,
      config: { problems: ["QUOTA_EXCEEDED"] },
      schema: {
        summary: "Change an agent's name, labels or metadata",
        params: AgentParams,
        body: AgentPatch,
        response: { 200: AgentSchema },
      },
    },
    async (request) => {
      const { name, labels, metadata } = request.body;
      const change = {
        ...(name === undefined ? {} : { name }),
        ...(labels === undefined ? {} : { labels: JSON.stringify(labels) }),
        ...(metadata === undefined ? {} : { metadata: metadataText(metadata) }),
      };
      const row = await ownAgent(context, request);
      if (Object.keys(change).length === 0) return answer(row);
      const bytes = Buffer.byteLength(change.metadata ?? "");
      const added = { agents: 0, bytes, insteadOf: Buffer.byteLength(row.metadata) };
      const { user_id, agent_id } = row;
      const changed = await changeStore(context, user_id, async (tx, _nowMs, post) => {
        await holdQuotas(tx, user_id, context.quotas, added);
        // Before it is looked at once more: nobody else moves it meanwhile.
        if (change.labels !== undefined) await noteLabels(tx, user_id, agent_id, post);
        const before = await findAgent(tx, user_id, agent_id);
        if (before === undefined || !sees(credentialOf(request), before)) return undefined;
        if (change.labels !== undefined) demandSeen(request, { agent_id, labels: change.labels });
        return changeAgent(tx, user_id, agent_id, change);
      });
      if (changed === undefined) throw notFound("agent");
      return answer(changed);
    },
  );

  app.delete(
    "/agents/:agent_id",
    {
      onRequest: writing,
      schema: {
        summary: "Remove an agent",
        description: "Its tokens and its link end at once.",
        params: AgentParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const row = await ownAgent(context, request);
      if (!(await deleteAgent(context, credentialOf(request), row.agent_id)))
        throw notFound("agent");
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/agents/:agent_id/rotate-token",
    {
      onRequest: writing,
      config: { problems: ["CONFLICT", ...IDEMPOTENCY_PROBLEMS] },
      schema: {
        summary: "Renew an agent's relay token",
        headers: IdempotencyHeaders,
        description: "The old one and the agent's link end at once.",
        params: AgentParams,
        response: { 200: RotateAgentAnswer },
      },
    },
    (request, reply) => {
      const rotate = async () => {
        const row = await ownAgent(context, request);
        const rotated = await rotateAgentToken(context, credentialOf(request), row.agent_id);
        if (rotated === null) throw notFound("agent");
        return {
          agent_id: row.agent_id,
          api_token: rotated.token,
          rotated_at: timestamp(rotated.rotatedAtMs),
        };
      };
      return idempotently(context, request, reply, rotate, isCurrent(context, request));
    },
  );

  app.get(
    "/agents/:agent_id/export",
    {
      onRequest: writing,
      schema: {
        summary: "What a device needs to connect",
        description:
          "As JSON, or as firmware takes it: by `format`, or by the first type of Accept that is known.",
        params: AgentParams,
        querystring: ExportQuery,
        response: { 200: EXPORTED },
      },
    },
    async (request, reply) => {
      const row = await ownAgent(context, request);
      const token = await exportAgentToken(context, credentialOf(request), row.agent_id);
      if (token === null) throw notFound("agent");
      const url = relayUrl(context, request);
      const format = exportFormat(request.query.format, request.headers.accept);
      reply.header("vary", "accept");
      if (format === "json") {
        return {
          agent_id: row.agent_id,
          api_token: token,
          relay_url: url,
          created_at: timestamp(row.created_at),
        };
      }
      const base = httpBase(context, request);
      const agent = { agentId: row.agent_id, relayToken: token, url, base };
      reply.type(`${EXPORT_MEDIA_TYPES[format]}; charset=utf-8`);
      return reply.send(Buffer.from(exportText(format, agent)) as never);
    },
  );
};

/** Whether an agent's token, returned earlier, is still its current one. */
const isCurrent =
  (
    context: HttpContext,
    request: FastifyRequest,
  ): IsTrue<{ agent_id: string; api_token: string }> =>
  async ({ agent_id, api_token }) => {
    const credential = credentialOf(request);
    const { userId } = credential;
    const { db } = context.store;
    const row = await findAgent(db, userId, agent_id);
    if (row === undefined || !sees(credential, row)) return false;
    const token = await currentToken(db, { userId, agentId: agent_id });
    return token?.hash === hashToken(api_token);
  };

/** One response in four media types. */
const EXPORTED = {
  description: "What the agent's firmware is configured with.",
  content: {
    [EXPORT_MEDIA_TYPES.json]: { schema: AgentExport },
    [EXPORT_MEDIA_TYPES.espruino]: { schema: EspruinoModule },
    [EXPORT_MEDIA_TYPES.moddable]: { schema: ModdableManifest },
    [EXPORT_MEDIA_TYPES.env]: { schema: EnvironmentFile },
  },
};

const ownAgent = async (
  context: HttpContext,
  request: FastifyRequest<{ Params: AgentParams }>,
): Promise<AgentRow> => {
  const { agent_id } = request.params;
  const row = AGENT_ID.test(agent_id)
    ? await findAgent(context.store.db, credentialOf(request).userId, agent_id)
    : undefined;
  if (row === undefined || !sees(credentialOf(request), row)) throw notFound("agent");
  return row;
};

/** A key makes no agent, and moves none, that it would not see. Throws the 403. */
const demandSeen = (
  request: FastifyRequest,
  agent: Pick<AgentRow, "agent_id" | "labels">,
): void => {
  if (sees(credentialOf(request), agent)) return;
  throw new HttpProblem("FORBIDDEN", "The access key's selector does not match that agent.");
};

const agentAnswer = (context: HttpContext, row: AgentRow): Agent => ({
  agent_id: row.agent_id,
  name: row.name,
  online: context.links.isOnline(row.agent_id, row.node, row.user_id),
  last_seen: row.last_seen === null ? null : timestamp(row.last_seen),
  runtime: row.runtime,
  firmware_version: row.firmware_version,
  created_at: timestamp(row.created_at),
  labels: context.store.decoded(() => JSON.parse(row.labels) as Agent["labels"]),
  metadata: context.store.decoded(() => JSON.parse(row.metadata) as Agent["metadata"]),
});

const metadataText = (metadata: Agent["metadata"]): string => {
  const text = jsonText(metadata);
  if (text === null || Buffer.byteLength(text) > MAX_METADATA_BYTES) {
    throw invalidBody("/metadata", `must have at most ${MAX_METADATA_BYTES} bytes as JSON text`);
  }
  return text;
};
