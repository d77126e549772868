/**
 * Every route of the server, as its router lists them, compared with the document: both have the
 * same ones, and each answers according to its schema.
 */
import { METHODS } from "node:http";
import { type Rest, startRest } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Description, readDescription } from "./document.ts";
import { rightCredentials, startTestedRelay, type TestedRelay } from "./world.ts";

let rest: Rest;
let world: TestedRelay;
let description: Description;
beforeAll(async () => {
  [rest, world] = await Promise.all([startRest(), startTestedRelay()]);
  description = readDescription(JSON.parse((await world.get("/api/openapi.json")).body.toString()));
});
afterAll(() => Promise.all([rest.close(), world.close()]));

/** Links or a page for people; neither is for programs, so the document omits them. */
const FOR_BROWSERS = ["/", "/console", "/console/", "/console/{asset}"];

/** The router's own list: a tree of path segments, each with the methods that end there. */
const routePaths = (): string[] => {
  const paths: string[] = [];
  const stack: string[] = [];
  for (const line of rest.app.printRoutes({ commonPrefix: false }).split("\n")) {
    const found = /^([\s│]*)[├└]── (\S*)(?: \((.*)\))?$/.exec(line);
    if (found === null) continue;
    const [, indent = "", piece = "", methods] = found;
    const depth = indent.length / 4;
    stack.length = depth;
    stack.push(piece);
    if (methods !== undefined) paths.push(stack.join(""));
  }
  const found = [...new Set(paths)].map((path) => path.replace(/:(\w+)/g, "{$1}"));
  expect(found).toEqual(expect.arrayContaining(FOR_BROWSERS));
  return found.filter((path) => !FOR_BROWSERS.includes(path));
};

const request = (method: string, path: string, credential: string) => ({
  method,
  path: path.replace(/\{\w+\}/g, "x"),
  credential,
  contentType: null,
  headers: {},
  body: null,
  value: undefined,
});

test("the document has every path of the router, and no other", () => {
  const documented = new Set(description.operations.map(({ path }) => path));
  expect(routePaths().sort()).toEqual([...documented].sort());
  expect(documented.size).toBeGreaterThan(15);
});

test("every method of every path is an operation that answers as documented, or 405", async () => {
  let person = await world.person();
  for (const path of routePaths()) {
    const operations = description.operations.filter((operation) => operation.path === path);
    const documented = operations.map(({ method }) => method);
    const expected = [...documented, ...(documented.includes("GET") ? ["HEAD"] : [])].sort();
    const allowed: string[] = [];
    // node's client cannot send a CONNECT to a path, and no router receives one.
    for (const method of METHODS.filter((some) => some !== "CONNECT")) {
      const operation = operations.find((some) => some.method === method);
      const credential = operation === undefined ? "account" : rightCredentials(operation)[0];
      const answer = await world.send(request(method, path, credential ?? "nobody"), person);
      if (operation !== undefined && method !== "GET") person = await world.person();
      if (answer.status === 405) {
        expect(String(answer.headers.allow).split(", ").sort(), path).toEqual(expected);
        expect(answer.headers["content-type"]).toBe("application/problem+json");
      } else if (answer.status !== 404 || operation !== undefined || method === "HEAD") {
        allowed.push(method);
      }
      if (operation !== undefined) {
        expect([operation.name, description.judge(operation, answer)]).toEqual([
          operation.name,
          [],
        ]);
      }
      if (method === "HEAD") expect(answer.body.length, `HEAD ${path}`).toBe(0);
    }
    expect(allowed.sort(), path).toEqual(expected);
  }
});

test("HEAD answers as GET does, without the body", async () => {
  const person = await world.person();
  for (const operation of description.operations.filter(({ method }) => method === "GET")) {
    const credential = rightCredentials(operation)[0] ?? "nobody";
    const get = await world.send(request("GET", operation.path, credential), person);
    const head = await world.send(request("HEAD", operation.path, credential), person);
    expect([operation.path, head.status, head.headers["content-type"]]).toEqual([
      operation.path,
      get.status,
      get.headers["content-type"],
    ]);
  }
});

test("an unknown path is 404, as a problem document", async () => {
  for (const path of ["/nothing", "/api", "/api/v1", "/api/v1/nothing", "/metrics", "/api/docs/"]) {
    const answer = await world.get(path);
    expect([path, answer.status]).toEqual([path, 404]);
    expect(JSON.parse(answer.body.toString()).code).toBe("NOT_FOUND");
  }
});
