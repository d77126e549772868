/**
 * The REST side of the relay: one fastify server, every resource in its own file,
 * schemas from `@blindrelay/protocol/schema/rest`, errors as problem documents.
 */
import { randomUUID } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import { contained } from "../base/contain.ts";
import { accessOf, confirms } from "./base/access.ts";
import type { App, HttpContext } from "./base/context.ts";
import { answerProblems, malformedRequest } from "./base/problem.ts";
import { validatorCompiler } from "./base/validation.ts";
import { jsonBodies } from "./bodies.ts";
import { allowOrigins } from "./cors.ts";
import { collectRoutes } from "./describe/openapi.ts";
import { describeRoutes } from "./describe/routes.ts";
import { lacksOneHost, notOneHost } from "./host-header.ts";
import { Connections } from "./limits/connections.ts";
import { limitPipelining } from "./limits/pipelining.ts";
import { RequestLimits } from "./limits/request-limits.ts";
import { limitBodies, limitIdleness } from "./limits/slow-bodies.ts";
import { watchMethods } from "./methods.ts";
import { accountRoutes } from "./routes/account.ts";
import { adminAuditRoute } from "./routes/admin-audit.ts";
import { adminStatsRoute } from "./routes/admin-stats.ts";
import { adminUserRoutes } from "./routes/admin-users.ts";
import { agentRoutes } from "./routes/agents.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { authRoutes } from "./routes/auth.ts";
import { consoleRoutes } from "./routes/console.ts";
import { healthRoutes } from "./routes/health.ts";
import { keyRoutes } from "./routes/keys.ts";
import { releaseCheckRoute } from "./routes/release-check.ts";
import { releaseRoutes } from "./routes/releases.ts";
import { totpRoutes } from "./routes/totp.ts";
import { upgradeRoute } from "./routes/upgrade-required.ts";
import { buildSerializer } from "./serialization.ts";

declare module "fastify" {
  interface FastifyInstance {
    connections: Connections;
    /** Whether a connection waits for the response to an earlier request. */
    isAnswering: (socket: Socket) => boolean;
  }
}

/** Nothing that this API accepts comes near it. */
const BODY_LIMIT_BYTES = 65536;
/**
 * As long as node lets a request's head be, so that an impossible identifier is 404 and not a 400.
 */
const MAX_PARAM_LENGTH = 16384;
/** From a request's first byte to its last: an artifact of 64 MiB at 20 KB/s. */
const REQUEST_TIMEOUT_MS = 3_600_000;
/** Longer than proxies keep a connection for reuse. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;

/**
 * Builds the server without listening. `logger` must not be passed to code that logs bodies;
 * `serve` creates the server if it should not be a plain http one.
 */
export const buildApp = (
  context: HttpContext,
  logger: FastifyBaseLogger,
  serve: (listener: RequestListener) => Server = (listener) => createServer(listener),
): App => {
  const app: App = Fastify({
    loggerInstance: logger,
    bodyLimit: BODY_LIMIT_BYTES,
    schemaController: { compilersFactory: { buildSerializer } },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    genReqId: () => randomUUID(),
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    frameworkErrors: (error, request, reply) => {
      stampHeaders(request, reply as never);
      answerProblems(context, error, request, reply as never);
    },
    clientErrorHandler: contained(
      "connection",
      "a malformed request was not answered",
      malformedRequest,
      (_error, socket) => void socket.destroy(),
    ),
    return503OnClosing: false,
    // For `localhost` fastify would create a second server of its own, for the other address
    // family, without the limits below.
    serverFactory: serve,
    forceCloseConnections: "idle", // requests in progress are answered; see close.ts
  }).withTypeProvider<TypeBoxTypeProvider>();

  // These are not fastify options, which do not apply to a custom server.
  app.server.requestTimeout = REQUEST_TIMEOUT_MS;
  app.server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  // Else node answers a request without a Host, and without a problem; see host-header.ts.
  Object.assign(app.server, { requireHostHeader: false });
  limitIdleness(app.server);
  // Else node answers an `Expect` that it does not know, past all limits and without a problem.
  app.server.on(
    "checkExpectation",
    contained("request", "a request with an expectation failed", (request, response) => {
      app.server.emit("request", request, response);
    }),
  );
  app.decorate("connections", new Connections(app.server));
  app.setValidatorCompiler(validatorCompiler);
  app.setErrorHandler((error, request, reply) => answerProblems(context, error, request, reply));
  jsonBodies(app);
  const methods = watchMethods(app);
  app.addHook("onRequest", async (request, reply) => stampHeaders(request, reply));
  const limits = new RequestLimits(app, context);
  app.decorate("isAnswering", limitPipelining(app.server)); // asked before the pace
  app.decorate("requestLimits", limits);
  app.addHook("onRequest", async ({ raw }) => {
    if (lacksOneHost(raw)) throw notOneHost();
  });
  limitBodies(app);
  app.addHook("onRoute", (route) => {
    if (accessOf(route.onRequest) === null) return;
    route.config = { ...route.config, credentials: true };
    route.preHandler = confirms(context);
  });
  app.addHook("onRequest", async (request) => {
    const { unlimited, credentials } = request.routeOptions.config;
    // The others are counted by their credentials; see access.ts.
    if (unlimited !== true && credentials !== true) await limits.countAnonymous(request);
  });
  app.addHook("onResponse", async (request, reply) => {
    // A balancer polls health every second; a fault is logged where it occurs.
    const level = request.routeOptions.config.unlimited === true ? "debug" : "info";
    request.log[level](
      {
        method: request.method,
        route: request.routeOptions.url ?? null,
        status: reply.statusCode,
        address: context.addressOf(request.raw),
        ms: Math.round(limits.waitedMs(request) + reply.elapsedTime),
      },
      "request",
    );
  });

  if (context.corsOrigins.length > 0) allowOrigins(app, context.corsOrigins);
  const openapi = collectRoutes(app, context.version);
  app.register(async (root) => {
    healthRoutes(root as App, context);
    upgradeRoute(root as App);
    describeRoutes(root as App, context, openapi);
    consoleRoutes(root as App);
  });
  app.register(
    async (api) => {
      authRoutes(api as App, context);
      totpRoutes(api as App, context);
      accountRoutes(api as App, context);
      keyRoutes(api as App, context);
      agentRoutes(api as App, context);
      releaseRoutes(api as App, context);
      releaseCheckRoute(api as App, context);
      adminStatsRoute(api as App, context);
      adminUserRoutes(api as App, context);
      adminAuditRoute(api as App, context);
      api.register(async (artifacts) => artifactRoutes(artifacts as App, context));
    },
    { prefix: "/api/v1" },
  );
  app.register(async (last) => methods.answerOthers(last as App));
  return app;
};

/** Headers of every response, including errors before any route. */
const stampHeaders = (request: FastifyRequest, reply: FastifyReply): void => {
  reply.header("x-request-id", request.id);
  reply.header("x-content-type-options", "nosniff");
  reply.header("cache-control", "no-store"); // secrets, or true only for a moment
};
