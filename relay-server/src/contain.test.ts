/** What a handler throws stays where it was thrown; and every handler is registered that way. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { contained, detached, fault, faultCounts, logFaults } from "./contain.ts";
import { drawToken } from "./control/secrets.ts";

const logged: [{ err: { message: string; stack: string }; since?: number }, string][] = [];
const stopLogging = logFaults({ error: (fields, what) => logged.push([fields as never, what]) });
afterEach(() => {
  logged.length = 0;
});

const count = () => Object.fromEntries(faultCounts());

test("what a handler throws ends what it was called for, is counted, and logged with a stack", () => {
  const before = count().connection ?? 0;
  const ended: unknown[] = [];
  const handler = contained(
    "connection",
    "a test failed",
    function (this: string, number: number) {
      throw new Error(`${this} ${number}`);
    },
    function (this: string, number: number) {
      ended.push([String(this), number]);
    },
  );
  handler.call("seven", 7);
  expect(ended).toEqual([["seven", 7]]);
  expect(count().connection).toBe(before + 1);
  expect(logged).toMatchObject([[{ err: { message: "seven 7" } }, "a test failed"]]);
  expect(logged[0]?.[0].err.stack).toContain("contain.test.ts");
});

test("so does what it rejects with, and what nobody waits for", async () => {
  const ended: number[] = [];
  const reject = async () => Promise.reject(new Error("later"));
  contained("timer", "a promise failed", reject, () => ended.push(1))();
  detached("store", "a job failed", reject());
  await expect
    .poll(() => logged.map(([, what]) => what))
    .toEqual(["a promise failed", "a job failed"]);
  expect(ended).toEqual([1]);
});

test("an end that fails, too, is one more fault", () => {
  const bang = () => {
    throw new Error("bang");
  };
  contained("bus", "a bus failed", bang, bang)();
  expect(logged.map(([, what]) => what)).toEqual([
    "a bus failed",
    "a bus failed, and could not be ended",
  ]);
});

test("a fault that repeats is counted each time, and logged once a minute", () => {
  const before = count().timer ?? 0;
  for (let i = 0; i < 1000; i++) fault("timer", "a clock failed", new Error("again"));
  expect(logged).toHaveLength(1);
  expect(count().timer).toBe(before + 1000);
});

test("neither a token in the text nor a field of the error is logged", () => {
  const token = drawToken("session");
  fault("request", "a request failed", Object.assign(new Error(`bad ${token}`), { raw: token }));
  expect(JSON.stringify(logged)).not.toContain(token);
  expect(logged[0]?.[0].err.message).toBe("bad (a secret)");
  stopLogging();
  fault("request", "another request failed", "a text");
  expect(logged).toHaveLength(1);
});

/**
 * Where a handler is registered, up to the handler: events of emitters, timers, and work that
 * nobody waits for.
 */
const REGISTERS =
  /\.(?:on|once|addListener|prependListener)\(\s*"[\w-]+",\s*|(?<!\w\.)\b(?:setTimeout|setInterval|setImmediate|queueMicrotask)\(\s*|\bnextTick\(\s*|\bvoid (?=(?:this\.)?#?\w+\([^)]*\);)/g;
/** They cannot throw. */
const HARMLESS =
  /^(?:contained\(|(?:resolve|reject|ignore|stop)\b|\(\) => (?:undefined|clearTimeout\(\w+\)|\w+\.abort\(\)|resolve\(|setImmediate\(resolve|\w+\.(?:delete|flushSync)\()|\(\w+\) => \w+\.delete\()/;

/** Handlers registered in `code` that are not contained. */
const bare = (code: string): string[] => {
  // A name stands for what it is declared as.
  const isContained = (name: string) =>
    new RegExp(`\\b${name}(?:: [^=]+)? = contained\\(`).test(code);
  return [...code.matchAll(REGISTERS)]
    .filter(({ 0: match, index }) => {
      const handler = code.slice(index + match.length);
      const name = /^(?:this\.)?#?(\w+)\b(?!\(| =>)/.exec(handler)?.[1];
      return !HARMLESS.test(handler) && !(name !== undefined && isContained(name));
    })
    .map(({ 0: match, index }) => code.slice(index, index + match.length + 80));
};

test("the lint below finds a handler that is not contained", () => {
  expect(bare('socket.on("data", contained("connection", "x", take));')).toEqual([]);
  expect(bare('const take = contained("bus", "x", f);\nsocket.on("data", take);')).toEqual([]);
  for (const code of [
    'socket.on("data", take);',
    'socket.once(\n  "close",\n  (chunk) => take(chunk),\n);',
    "setTimeout(() => work(), 100);",
    "setImmediate(work);",
    "void this.#flush(connection);",
  ]) {
    expect(bare(code), code).toHaveLength(1);
  }
});

/** Registered for the whole process, or in a thread of its own, with the reason beside it. */
const EXCEPT = [
  'main.ts .on("uncaughtException", fail)',
  'main.ts .on("error", endUnwritten)',
  'main.ts .once("SIGINT", () => process.exit(130))',
  'main.ts .once("SIGTERM", () => process.exit(143))',
  'ops/password.ts .on("SIGINT", () => {',
  'cli.ts .on("uncaughtException", (error) => fault(',
  'store/checkpoints.ts .on("message", () => { try {',
];

test("every handler of an event or a timer is contained", () => {
  const folder = import.meta.dirname;
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => /\.ts$/.test(path) && !/\.test\.ts$|(^|\/)testing\/|^contain\.ts$/.test(path),
  );
  expect(files.length).toBeGreaterThan(150);
  const found = files.flatMap((path) =>
    bare(readFileSync(join(folder, path), "utf8")).map(
      (text) => `${path} ${text.replace(/\s+/g, " ").replace("( ", "(")}`,
    ),
  );
  expect(found.filter((line) => !EXCEPT.some((start) => line.startsWith(start)))).toEqual([]);
});
