/** Requests for an operation: valid, or with something wrong. */
import * as fc from "fast-check";
import type { Operation } from "./document.ts";
import { type Known, nearly, oddText, shaped } from "./shapes.ts";

export interface Request {
  readonly method: string;
  /** With its query, as on the wire. */
  readonly path: string;
  /** One of the world's kinds of credentials. */
  readonly credential: string;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** The value of the JSON in `body`; undefined if it is not JSON. */
  readonly value: unknown;
}

const RAW_PATH_PARTS = ["%ZZ", "%", "%00", ".", "..", "%2F", "a%2Fb", "%C3%28", "x".repeat(2000)];
const ODD_TYPES = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/json; charset=utf-16",
  "application/problem+json",
  "nonsense",
  ";;",
];
const ODD_BODIES = [
  "",
  "{",
  '{"a":1',
  "nul",
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"x":1}}}',
  "[".repeat(5000),
  `{"name":"${"x".repeat(70_000)}"}`,
  "\ufeff{}",
].map((text) => Buffer.from(text));

/**
 * Half of the requests are valid, with the right credentials; in the others anything may be wrong.
 */
export const requestsFor = (
  operation: Operation,
  known: Known,
  credentials: { readonly right: readonly string[]; readonly all: readonly string[] },
): fc.Arbitrary<Request> => {
  const drawn = (odd: boolean) =>
    fc
      .record({
        path: pathFor(operation, known, odd),
        query: queryFor(operation, known, odd),
        credential: odd
          ? fc.oneof(fc.constantFrom(...credentials.right), fc.constantFrom(...credentials.all))
          : fc.constantFrom(...credentials.right),
        headers: headersFor(operation, known, odd),
        content: contentFor(operation, known, odd),
      })
      .map(({ path, query, credential, headers, content }) => ({
        method: operation.method,
        path: `${path}${query}`,
        credential,
        headers,
        ...content,
      }));
  return fc.oneof(drawn(false), drawn(true));
};

const pathFor = (operation: Operation, known: Known, odd: boolean): fc.Arbitrary<string> => {
  const parameters = operation.parameters.filter((parameter) => parameter.in === "path");
  const values = parameters.map(({ name, schema }) => {
    const good = shaped(schema, known, name).map(escaped);
    return odd ? fc.oneof(good, oddText.map(escaped), fc.constantFrom(...RAW_PATH_PARTS)) : good;
  });
  return fc
    .tuple(...values)
    .map((texts) =>
      parameters.reduce(
        (path, { name }, index) => path.replace(`{${name}}`, () => texts[index] ?? ""),
        operation.path,
      ),
    );
};

const escaped = (value: unknown): string => encodeURIComponent(String(value).toWellFormed());

const queryFor = (operation: Operation, known: Known, odd: boolean): fc.Arbitrary<string> => {
  const parameters = operation.parameters.filter((parameter) => parameter.in === "query");
  const pairs = parameters.map(({ name, schema, required }) => {
    const good = shaped(schema, known, name).map(escaped);
    const one = good.map((text) => [`${name}=${text}`]);
    const none = fc.constant<string[]>([]);
    return odd
      ? fc.oneof(
          one,
          none,
          oddText.map((text) => [`${name}=${escaped(text)}`]),
          good.map((text) => [`${name}=${text}`, `${name}=${text}`]),
        )
      : required
        ? one
        : fc.oneof({ weight: 1, arbitrary: one }, { weight: 2, arbitrary: none });
  });
  const extra = odd ? fc.constantFrom([], ["unknown=1"], ["=", "&&"], ["%ZZ=%"]) : fc.constant([]);
  return fc.tuple(...pairs, extra).map((all) => {
    const text = all.flat().join("&");
    return text === "" ? "" : `?${text}`;
  });
};

/** Header values are ASCII without control characters; HTTP clients would not send others. */
const headersFor = (
  operation: Operation,
  known: Known,
  odd: boolean,
): fc.Arbitrary<Readonly<Record<string, string>>> => {
  const parameters = operation.parameters.filter((parameter) => parameter.in === "header");
  const values = parameters.map(({ name, schema, required }) => {
    const good = shaped(schema, known, name).map(headerText);
    if (odd) return fc.oneof(good, fc.constant(null), oddText.map(headerText));
    return required ? good : fc.option(good);
  });
  const accept = fc.constantFrom(null, "*/*", ...(odd ? ["application/json", "text/*", ";;"] : []));
  return fc
    .tuple(accept, ...values)
    .map(([accepted, ...texts]) =>
      Object.fromEntries(
        [
          ["accept", accepted] as const,
          ...parameters.map(({ name }, i) => [name, texts[i]] as const),
        ]
          .filter((pair): pair is readonly [string, string] => typeof pair[1] === "string")
          .map(([name, text]) => [name.toLowerCase(), text]),
      ),
    );
};

const headerText = (value: unknown): string => String(value).replace(/[^\x20-\x7e]/g, "?");

type Content = Pick<Request, "contentType" | "body" | "value">;
const NOTHING: Content = { contentType: null, body: null, value: undefined };

const contentFor = (operation: Operation, known: Known, odd: boolean): fc.Arbitrary<Content> => {
  if (operation.method === "GET") return fc.constant(NOTHING);
  const nothing = fc.constant(NOTHING);
  const documented = Object.entries(operation.bodies ?? {}).map(([type, schema]) => {
    if (!type.includes("json")) return binary(type);
    const good = shaped(schema, known);
    return (odd ? fc.oneof(good, nearly(good)) : good).map((value) => json(type, value));
  });
  if (odd) return fc.oneof(...documented, ...documented, nothing, oddContent());
  if (documented.length === 0) return nothing;
  return operation.bodyRequired ? fc.oneof(...documented) : fc.oneof(nothing, ...documented);
};

const json = (contentType: string, value: unknown): Content => ({
  contentType,
  body: Buffer.from(JSON.stringify(value) ?? ""),
  value,
});

const binary = (contentType: string): fc.Arbitrary<Content> =>
  fc.uint8Array({ maxLength: 4096 }).map((bytes) => ({
    contentType,
    body: Buffer.from(bytes),
    value: undefined,
  }));

const oddContent = (): fc.Arbitrary<Content> =>
  fc
    .record({
      contentType: fc.oneof(fc.constant("application/json"), fc.constantFrom(null, ...ODD_TYPES)),
      body: fc.oneof(
        fc.constantFrom(...ODD_BODIES),
        fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
      ),
    })
    .map((content) => ({ ...content, value: undefined }));
