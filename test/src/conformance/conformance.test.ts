/**
 * The relay compared with its own description: thousands of requests that fast-check generates from
 * the OpenAPI document, valid and mutated, with every kind of credential. Every described operation
 * is tested, so a new one needs no change here.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Description, type Operation, readDescription } from "./document.ts";
import { type Request, requestsFor } from "./requests.ts";
import type { Known } from "./shapes.ts";
import { CREDENTIALS, rightCredentials, startTestedRelay, type TestedRelay } from "./world.ts";

const REQUESTS = 2400;

let world: TestedRelay;
let description: Description;
beforeAll(async () => {
  world = await startTestedRelay();
  description = readDescription(JSON.parse((await world.get("/api/openapi.json")).body.toString()));
});
afterAll(() => world.close());

test(`${REQUESTS} requests are answered as documented, and never with a fault`, async () => {
  const { operations } = description;
  const numRuns = Math.ceil(REQUESTS / operations.length);
  const seen = new Map<string, Map<number, number>>();
  let sent = 0;
  let person = await world.person();
  /** A request with this person's credentials succeeded, so some of them may have ended. */
  let stale = false;
  /** Identifiers from answers, by collection. */
  const learnt: Record<string, string[]> = {};

  for (const operation of operations) {
    const statuses = new Map<number, number>();
    seen.set(operation.name, statuses);
    const known = withLearnt(person.known, learnt, operation);
    await fc.assert(
      fc.asyncProperty(
        requestsFor(operation, placeholders(known), {
          right: rightCredentials(operation),
          all: CREDENTIALS,
        }),
        async (drawn) => {
          if (stale) person = await world.person();
          stale = false;
          const request = filled(drawn, withLearnt(person.known, learnt, operation));
          const answer = await world.send(request, person);
          sent += 1;
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          if (answer.status < 300 && operation.method !== "GET") stale = true;
          if (answer.status < 300) learn(learnt, operation, answer.body);
          const faults = description.judge(operation, answer);
          if (answer.status < 300 && isRefusable(description, operation, request)) {
            faults.push(`a body that the document does not allow was accepted: ${request.body}`);
          }
          expect(faults).toEqual([]);
        },
      ),
      { numRuns, unbiased: true },
    );
  }

  expect(sent).toBeGreaterThanOrEqual(2000);
  const summary = [...seen].map(([name, some]) => `${name} ${JSON.stringify([...some].sort())}`);
  const reached = [...seen.values()].filter((some) =>
    [...some.keys()].some((status) => status < 300 || status === 426),
  );
  // A few need what no generator has: a current code, a signature.
  expect(reached.length / seen.size, summary.join("\n")).toBeGreaterThan(0.75);
  const every = new Set([...seen.values()].flatMap((some) => [...some.keys()]));
  for (const status of [200, 201, 204, 400, 401, 403, 404, 415, 422, 426]) {
    expect([...every], summary.join("\n")).toContain(status);
  }
});

test("every operation that checks credentials refuses a locked-out address", async () => {
  const person = await world.person();
  const address = "192.0.2.77";
  const base = { contentType: null, headers: {}, body: null, value: undefined };
  for (let i = 0; i < 5; i++) {
    const guess = { ...base, method: "GET", path: "/api/v1/account", credential: "unknown" };
    await world.send(guess, person, address);
  }
  for (const operation of description.operations.filter(({ holders }) => holders.length > 0)) {
    const path = operation.path.replace(/\{\w+\}/g, "x");
    const request = { ...base, method: operation.method, path, credential: "account" };
    const answer = await world.send(request, person, address);
    expect([operation.name, answer.status]).toEqual([operation.name, 429]);
    expect(description.judge(operation, answer)).toEqual([]);
  }
});

/** A body of a documented type that the document's schema refuses. */
const isRefusable = (judge: Description, operation: Operation, request: Request): boolean =>
  request.value !== undefined &&
  request.contentType !== null &&
  operation.bodies !== null &&
  request.contentType in operation.bodies &&
  !judge.allowsBody(operation, request.contentType, request.value);

// People change while one property runs, and fast-check repeats its values when it shrinks, so
// requests are drawn with placeholders for known values, which are filled in at the last moment.

const placeholders = (known: Known): Known =>
  Object.fromEntries(
    Object.entries(known).map(([name, values]) => [
      name,
      values.map((_value, index) => `known-${name}-${index}`),
    ]),
  );

const filled = (request: Request, known: Known): Request => {
  const fill = (text: string, write: (value: string) => string = (value) => value): string =>
    text.replace(/known-([a-z_]+)-(\d+)/g, (mark, name: string, index: string) =>
      write(String(known[name]?.[Number(index)] ?? mark)),
    );
  return {
    ...request,
    path: fill(request.path, encodeURIComponent),
    body: request.value === undefined ? request.body : Buffer.from(fill(String(request.body))),
    value:
      request.value === undefined ? undefined : JSON.parse(fill(JSON.stringify(request.value))),
  };
};

const MAX_LEARNT = 3;

/** `agents` for `/api/v1/agents/{agent_id}`; null for paths outside the API proper. */
const collectionOf = ({ path }: Operation): string | null => path.split("/")[3] ?? null;

/** Stores the identifiers in an answer, by its collection, for the paths that need one. */
const learn = (learnt: Record<string, string[]>, operation: Operation, body: Buffer): void => {
  const collection = collectionOf(operation);
  if (collection === null) return;
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, part] of Object.entries(value)) {
      if (name === "id" && typeof part === "string") {
        learnt[collection] = [part, ...(learnt[collection] ?? [])].slice(0, MAX_LEARNT);
      }
      walk(part);
    }
  };
  try {
    walk(JSON.parse(body.toString()));
  } catch {
    // A page or a file.
  }
};

/**
 * People's identifiers are known and end with them; other collections' are learned from answers.
 */
const withLearnt = (
  known: Known,
  learnt: Readonly<Record<string, string[]>>,
  operation: Operation,
): Known => {
  const ids = learnt[collectionOf(operation) ?? ""] ?? [];
  const [own, ...others] = known.id ?? [];
  return { ...known, id: operation.path.includes("/users") ? [own, ...others] : [...ids, own] };
};
