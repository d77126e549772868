/** The methods of an agent and their parameters, for people who type them. */
import type { Agent, CallError } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { didYouMean } from "@blindrelay/protocol/did-you-mean";
import { parseJson } from "@blindrelay/protocol/parse-json";
import { failing } from "./failing.ts";

const INFO_LIMIT_MS = 5_000;
/** JSON-RPC 2.0, "Method not found". */
export const UNKNOWN_METHOD = -32601;

/** An agent's method names are shown to a person and must not control the terminal. */
const METHOD_NAME = /^[^\s\p{C}]{1,128}$/u;

/** Parameters: JSON-RPC accepts an object or an array. Throws a Failure (usage) for other texts. */
export const readParams = (text: string): object => {
  const params = failing("usage", "the parameters are ", () => parseJson(text));
  if (typeof params === "object" && params !== null) return params;
  throw new Failure("usage", "the parameters must be a JSON object or array");
};

/** The methods that an agent reports and that can be typed. */
export const typeable = (methods: unknown): string[] =>
  (Array.isArray(methods) ? methods : []).filter(
    (method) => typeof method === "string" && METHOD_NAME.test(method),
  );

/** What the agent can do, by its own account. Rejects with a CallError. */
export const methodsOf = async (agent: Agent): Promise<string[]> => {
  const info = await agent.call<{ methods?: unknown } | null>("system.info", undefined, {
    timeoutMs: INFO_LIMIT_MS,
    idempotent: true,
  });
  return typeable(info?.methods);
};

/** A sentence about a method that an agent does not know; "" for other errors. */
export const similarMethod = (
  error: CallError,
  method: string,
  methods: readonly string[],
): string => {
  if (error.remote?.code !== UNKNOWN_METHOD) return "";
  const similar = didYouMean(method, methods);
  const all = methods.length === 0 ? "" : `: it has ${methods.join(", ")}`;
  return `the agent has no method ${method}${similar || all}`;
};
