/**
 * Handlers for every operation of the relay's REST API, generated from its schemas, and for `/wss`.
 *
 * A request is refused as by the relay: without credentials, with the wrong ones, in the wrong
 * shape. Operations on the account and its agents are answered from the relay in memory; every
 * other operation is answered with its documented example.
 */
import type { ErrorCode } from "@blindrelay/protocol";
import { ERRORS } from "@blindrelay/protocol";
import { HttpResponse, http, type RequestHandler, type WebSocketHandler, ws } from "msw";
import { Errors } from "typebox/schema";
import type { MemoryRelay } from "../fake-device/memory-relay.ts";
import { type Request as Asked, answersOf, Refusal } from "./answers.ts";
import type { Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.generated.ts";

export interface RelayHandlersOptions {
  /** The relay's http base, such as `https://relay.example`; by default, any origin. */
  readonly url?: string;
  /** The password that `POST /auth/login` accepts for user `ada`; default: "a long password". */
  readonly password?: string;
}

const PROBLEM_TYPE = "application/problem+json";

/** For `setupWorker(...relayHandlers(relay))`, or `setupServer` if REST is called from Node. */
export const relayHandlers = (
  relay: MemoryRelay,
  options: RelayHandlersOptions = {},
): (RequestHandler | WebSocketHandler)[] => {
  const { url, password = "a long password" } = options;
  const base = url === undefined ? "*" : url.replace(/\/$/, "");
  const answers = answersOf(relay, password);
  // Fixed paths first: /releases/check is not a release.
  const operations = [...OPERATIONS].sort((a, b) => parameters(a) - parameters(b));
  const rest = operations.map((operation) =>
    http[operation.method](`${base}${operation.path}`, async ({ request, params }) => {
      try {
        const asked: Asked = {
          url: new URL(request.url),
          params: params as Readonly<Record<string, string>>,
          token: bearer(request),
          query: readQuery(operation, new URL(request.url)),
          body: await readBody(operation, request),
        };
        answers.admit(operation, asked.token);
        checkShape(operation.query, asked.query, "querystring");
        const { body } = operation;
        if (body !== null && (body.required || asked.body !== undefined)) {
          checkShape(body.schema, asked.body, "body");
        }
        const answer = answers.answer(operation, asked);
        return answer === null
          ? new HttpResponse(null, { status: operation.status })
          : HttpResponse.json(answer as object, { status: operation.status });
      } catch (error) {
        if (error instanceof Refusal) return problem(error);
        throw error;
      }
    }),
  );
  return [...rest, socketHandler(relay, base.replace(/^http/, "ws"))];
};

const parameters = ({ path }: Operation): number => path.split(":").length;

const socketHandler = (relay: MemoryRelay, base: string): WebSocketHandler =>
  ws.link(`${base}/wss`).addEventListener("connection", ({ client }) => {
    const link = relay.accept({
      send: (text) => client.send(text),
      close: (code, reason) => client.close(code, reason),
    });
    client.addEventListener("message", ({ data }) => {
      if (typeof data === "string") link.receive(data);
      else client.close(1003, "text messages only");
    });
    client.addEventListener("close", () => link.closed(), { once: true });
  });

const bearer = (request: Request): string | null =>
  /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;

/** Converts numbers and booleans, as the relay does, where the operation expects them. */
const readQuery = ({ query }: Operation, url: URL): Record<string, unknown> =>
  Object.fromEntries(
    [...url.searchParams].map(([name, text]) => {
      const { type } = (query.properties[name] ?? {}) as { type?: string };
      if (type === "boolean" && /^(true|false)$/.test(text)) return [name, text === "true"];
      if (type === "integer" && /^(0|[1-9][0-9]*)$/.test(text)) return [name, Number(text)];
      return [name, text];
    }),
  );

const readBody = async ({ body }: Operation, request: Request): Promise<unknown> => {
  const text = await request.text();
  if (body === null || text === "") return undefined;
  if (!/^application\/json\b/.test(request.headers.get("content-type") ?? "")) {
    throw new Refusal("UNSUPPORTED_MEDIA_TYPE", "Send application/json.");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal("BAD_REQUEST", "The body is not JSON.");
  }
};

const checkShape = (schema: object, value: unknown, part: "body" | "querystring"): void => {
  const [isRight, errors] = Errors(schema, value ?? null);
  if (isRight) return;
  const detail = "The request does not have the right shape";
  throw new Refusal(
    "VALIDATION_FAILED",
    detail,
    errors.map(({ instancePath, message }) => ({ path: instancePath, in: part, message })),
  );
};

const problem = ({ code, message, errors }: Refusal): HttpResponse<string> => {
  const { meaning, http: status } = ERRORS[code as ErrorCode];
  const body = {
    type: `urn:blindrelay:error:${code}`,
    title: meaning,
    status: status ?? 500,
    detail: message,
    code,
    request_id: crypto.randomUUID(),
    ...(errors === null ? {} : { errors }),
  };
  const headers = {
    "content-type": PROBLEM_TYPE,
    ...(body.status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
  return new HttpResponse(JSON.stringify(body), { status: body.status, headers });
};
