/**
 * Every rule of the table, with a workspace that breaks it and the most similar one that does not.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { checkBoundaries, formatViolation } from "./check.ts";
import { RULES } from "./rules.ts";

const packageJson = (name: string, exports: Record<string, string>): string =>
  JSON.stringify({ name: `@blindrelay/${name}`, exports });

const PACKAGES = {
  "protocol/package.json": packageJson("protocol", {
    ".": "./src/index.ts",
    "./schema": "./src/schema/index.ts",
    "./crypto": "./src/crypto/index.ts",
    "./session": "./src/session/index.ts",
    "./suites/*": "./src/suites/*.ts",
  }),
  "agent-sdk/package.json": packageJson("agent-sdk", { ".": "./src/index.ts" }),
  "client-sdk/package.json": packageJson("client-sdk", { ".": "./src/index.ts" }),
  "relay-server/package.json": packageJson("relay-server", { ".": "./src/index.ts" }),
  "protocol/src/index.ts": `export * from "./spec.ts";`,
  "protocol/src/spec.ts": "export const MAX = 1;",
  "protocol/src/schema/index.ts": `import { Type } from "typebox"; export const A = Type.Null();`,
  "protocol/src/crypto/index.ts": "export const seal = (): number => 1;",
  "protocol/src/session/index.ts": `export { seal } from "../crypto/index.ts";`,
  "protocol/src/suites/node.ts": `import { createHmac } from "node:crypto"; export { createHmac };`,
  "relay-server/src/index.ts": "export const start = (): void => {};",
};

/** `file:line what` of every violation in the small workspace above with `files` laid over it. */
const check = (files: Record<string, string>): string[] =>
  violationsOf(files).map(({ path, line, what }) => `${path}:${line} ${what}`);

const violationsOf = (files: Record<string, string>) =>
  checkBoundaries(new Map(Object.entries({ ...PACKAGES, ...files })));

test("the small workspace itself breaks nothing", () => {
  expect(check({})).toEqual([]);
});

describe("the relay is blind", () => {
  test.each(["crypto", "session", "suites/node"])("it may not load protocol/%s", (entry) => {
    const found = violationsOf({
      "relay-server/src/ws/connection.ts": `\nimport "@blindrelay/protocol/${entry}";`,
    });
    expect(found[0]).toMatchObject({
      rule: "the relay is blind",
      path: "relay-server/src/ws/connection.ts",
      line: 2,
    });
  });

  test("not even through other files and packages, and the chain is reported", () => {
    const [found, ...others] = violationsOf({
      "relay-server/src/main.ts": `import "./ws/connection.ts";`,
      "relay-server/src/ws/connection.ts": `import { A } from "@blindrelay/protocol/schema";`,
      "protocol/src/schema/index.ts": `\n\nexport { A } from "../helpers.ts";`,
      "protocol/src/helpers.ts": `export { seal as A } from "./crypto/index.ts";`,
    });
    expect(others).toEqual([]);
    expect(found?.chain).toEqual([
      "relay-server/src/ws/connection.ts:1",
      "protocol/src/schema/index.ts:3",
      "protocol/src/helpers.ts:1",
      "protocol/src/crypto/index.ts",
    ]);
    const text = formatViolation(found as NonNullable<typeof found>);
    expect(text).toContain("relay-server/src/ws/connection.ts:1  reaches protocol/src/crypto");
    expect(text).toContain("protocol/src/helpers.ts:1 -> protocol/src/crypto/index.ts");
    expect(text).toContain("cannot start to");
  });

  test.each([
    ["import()", `const open = () => import("@blindrelay/protocol/crypto");`],
    ["require", `require("@blindrelay/protocol/crypto");`],
    ["an export", `export * from "@blindrelay/protocol/crypto";`],
    [
      "an import of which only the names are types",
      `import { type A } from "@blindrelay/protocol/crypto";`,
    ],
    ["a worker", `new Worker(new URL("../../protocol/src/crypto/index.ts", import.meta.url));`],
  ])("nor by %s", (_, text) => {
    const found = check({ "relay-server/src/main.ts": text });
    expect(found).toContain("relay-server/src/main.ts:1 reaches protocol/src/crypto/index.ts");
  });

  test.each([
    ["a computed name", "import(name);", "the name is computed"],
    ["a missing entry point", `import "@blindrelay/protocol/keys";`, "has no entry point ./keys"],
    ["a missing file", `import "./gone.ts";`, "relay-server/src/gone.ts is not there"],
  ])("%s could lead anywhere and is refused", (_, text, why) => {
    expect(check({ "relay-server/src/main.ts": text })).toEqual([expect.stringContaining(why)]);
  });

  test("types and tests are free", () => {
    const found = check({
      "relay-server/src/a.ts": `import type { A } from "@blindrelay/protocol/crypto";`,
      "relay-server/src/b.ts": `type A = import("@blindrelay/protocol/crypto").A;`,
      "relay-server/src/a.test.ts": `import "@blindrelay/protocol/crypto";`,
    });
    expect(found).toEqual([]);
  });
});

test.each(["node:crypto", "node:fs/promises", "fs"])(
  "a browser's code does not reach %s, not even through another package",
  (name) => {
    const found = check({
      "client-sdk/src/browser/index.ts": `import "@blindrelay/protocol";`,
      "protocol/src/spec.ts": `import "${name}";`,
    });
    expect(found).toContainEqual(expect.stringContaining("browser/index.ts:1 reaches node:"));
  },
);

const PORTABLE_FILES = [
  "protocol/src/crypto/packet.ts",
  "protocol/src/session/opening.ts",
  "protocol/src/encoding/bytes.ts",
  "agent-sdk/src/core/agent.ts",
  "agent-sdk/src/ports.ts",
  "client-sdk/src/core/client.ts",
];

const PURE_FILES = [...PORTABLE_FILES, "relay-server/src/core/hub.ts"];

describe("a virtual run starts without a server", () => {
  const server = {
    "relay-server/src/index.ts": `export { open } from "./store/open.ts";`,
    "relay-server/src/store/open.ts": "export const open = (): void => {};",
  };

  test("it may not load one at its start, not even through other files", () => {
    const found = check({
      ...server,
      "simulator/src/virtual/run.ts": `import { open } from "@blindrelay/relay-server";`,
    });
    expect(found).toEqual([
      "simulator/src/virtual/run.ts:1 reaches relay-server/src/store/open.ts",
    ]);
  });

  test("but once it uses one", () => {
    const late = `const open = () => import("@blindrelay/relay-server");`;
    const found = check({
      ...server,
      "simulator/src/virtual/run.ts": late,
    });
    expect(found).toEqual([]);
  });
});

describe("portable code and the relay's core are pure", () => {
  describe.each(PURE_FILES)("%s", (path) => {
    test.each([
      ["node:", `import "node:fs";`, "loads node:fs"],
      ["Node without its prefix", `import "fs";`, "loads node:fs"],
      ["npm", `import "ws";`, "loads the npm package ws"],
      ["its own edge", `import "@blindrelay/protocol/suites/node";`, "suites/node.ts"],
    ])("may not load %s", (_, text, what) => {
      expect(check({ [path]: `\n${text}` })).toContainEqual(
        expect.stringMatching(new RegExp(`^${path}:2 loads .*${what.replace("loads ", "")}`)),
      );
    });

    test("may load the constants", () => {
      expect(check({ [path]: `import type { A } from "ws"; ${constantsFor(path)}` })).toEqual([]);
    });
  });

  const constantsFor = (path: string): string =>
    path.startsWith("protocol/")
      ? `import { MAX } from "../spec.ts";`
      : `import { MAX } from "@blindrelay/protocol";`;

  test("a forbidden module behind the constants is found, with its chain", () => {
    const [found] = violationsOf({
      "agent-sdk/src/core/agent.ts": `import "@blindrelay/protocol";`,
      "protocol/src/spec.ts": `import "node:os";`,
    });
    expect(found?.path).toBe("agent-sdk/src/core/agent.ts");
    expect(found?.chain).toEqual([
      "agent-sdk/src/core/agent.ts:1",
      "protocol/src/index.ts:1",
      "protocol/src/spec.ts:1",
      "node:os",
    ]);
  });

  test("so is an impure global behind them", () => {
    const [found] = violationsOf({
      "agent-sdk/src/core/agent.ts": `import "@blindrelay/protocol";`,
      "protocol/src/spec.ts": `\nexport const started = Date.now();`,
    });
    expect(found).toMatchObject({ path: "protocol/src/spec.ts", line: 2, what: "the global Date" });
    expect(found?.chain).toHaveLength(3);
  });

  test("only the relay's core may use the schemas", () => {
    const text = `import { A } from "@blindrelay/protocol/schema";`;
    expect(check({ "relay-server/src/core/hub.ts": text })).toEqual([]);
    expect(check({ "agent-sdk/src/core/agent.ts": text })).toHaveLength(1);
  });

  test("the relay's core may not load the relay's edges", () => {
    const found = check({
      "relay-server/src/core/hub.ts": `import "../store/sqlite.ts";`,
      "relay-server/src/store/sqlite.ts": "",
    });
    expect(found).toEqual([
      "relay-server/src/core/hub.ts:1 loads relay-server/src/store/sqlite.ts",
    ]);
  });

  test("a core may not load test helpers", () => {
    const found = check({
      "agent-sdk/src/core/agent.ts": `import "./agent.test.ts";`,
      "agent-sdk/src/core/agent.test.ts": `import "vitest";`,
    });
    expect(found).toEqual(["agent-sdk/src/core/agent.ts:1 loads agent-sdk/src/core/agent.test.ts"]);
  });
});

describe("what reads a clock, randomness or the environment, or waits", () => {
  const inCore = (text: string): string[] =>
    violationsOf({ "agent-sdk/src/core/agent.ts": text }).map(
      ({ line, what }) => `${line} ${what}`,
    );

  test.each([
    ["Date.now();", "the global Date"],
    ["new Date();", "the global Date"],
    ["new Date(...none);", "the global Date"],
    ["const now = Date;", "the global Date"],
    ["Math.random();", "Math.random"],
    [`Math["random"]();`, "Math.random"],
    ["const { random } = Math;", "Math held as a value"],
    ["Math[name]();", "Math with a computed member"],
    ["process.env;", "the global process"],
    ["typeof Buffer;", "the global Buffer"],
    ["setTimeout(() => {}, 1);", "the global setTimeout"],
    ["setInterval(() => {}, 1);", "the global setInterval"],
    ["performance.now();", "the global performance"],
    ["crypto.getRandomValues(a);", "the global crypto"],
    [`globalThis["Da" + "te"];`, "the global globalThis"],
    ["console.log(1);", "the global console"],
    ["fetch(url);", "the global fetch"],
    ["new WebSocket(url);", "the global WebSocket"],
    ["class A { at = Date.now(); }", "the global Date"],
    ["const a = { Date };", "the global Date"],
    ["const f = (now = Date) => now;", "the global Date"],
    ["{ const Date = 1; } Date;", "the global Date"],
    ["async function f() {}", "an async function"],
    ["const f = async () => {};", "an async function"],
    ["class A { async f() {} }", "an async function"],
    ["import.meta.url;", "import.meta"],
  ])("%s", (text, what) => {
    expect(inCore(`\n${text}`)).toEqual([`2 ${what}`]);
  });

  test("await at the top", () => {
    expect(inCore("await 1;")).toContain("1 await");
    expect(inCore("for await (const a of b) ;")).toContain("1 for await");
  });

  test.each([
    "Math.floor(1.5);",
    "new Date(atMs).toISOString();",
    "const f = (process: number) => process;",
    "const { crypto } = ports; crypto.seal();",
    "const f = ({ fetch }: P) => fetch();",
    "for (const window of windows) window.close();",
    "try { a(); } catch (global) { throw global; }",
    "function module() { return module; }",
    "ports.setTimeout(1); const o = { Date: 1, process() {} }; o.Date;",
    "class A { console = 1; fetch() {} }",
    "let at: Date; type P = typeof process;",
    "// Date.now()\nconst text = `Date`;",
  ])("is not %s", (text) => {
    expect(inCore(text)).toEqual([]);
  });

  test("edges and tests may do all of it", () => {
    const text = "await fetch(process.env.URL); Date.now();";
    const found = check({
      "agent-sdk/src/node/link.ts": text,
      "agent-sdk/src/core/agent.test.ts": text,
      "relay-server/src/main.ts": text,
    });
    expect(found).toEqual([]);
  });
});

describe("few import the relay", () => {
  test.each(["tools", "agent-sdk", "client-sdk", "protocol"])("%s may not", (name) => {
    const found = violationsOf({ [`${name}/src/a.ts`]: `import "@blindrelay/relay-server";` });
    expect(found.map(({ rule }) => rule)).toContain("imports between packages");
  });

  test.each(["simulator", "test", "bench"])("%s may", (name) => {
    expect(check({ [`${name}/src/a.ts`]: `import "@blindrelay/relay-server";` })).toEqual([]);
  });
});

describe("the proof knows the specification only", () => {
  const inProof = (text: string, name = "test/src/specification/a.test.ts"): string[] =>
    check({
      "test/src/specification/raw-http.ts": "",
      "test/src/cli/a.ts": "",
      [name]: `\n${text}`,
    });

  test.each([
    `import "@blindrelay/protocol";`,
    `import type { A } from "@blindrelay/protocol/schema";`,
    `import "../cli/a.ts";`,
    `import "../../../relay-server/src/index.ts";`,
    `import "ws";`,
    "import(name);",
  ])("%s is refused", (text) => {
    expect(inProof(text)).toContainEqual(
      expect.stringMatching(/^test\/src\/specification\/a\.test\.ts:2 loads /),
    );
    expect(inProof(text, "test/src/contract/a.ts").length).toBeGreaterThan(0);
  });

  test("Node, vitest, its own files and the relay's entry point are allowed", () => {
    const text = `import "node:net"; import "vitest"; import "@blindrelay/relay-server";`;
    expect(inProof(`${text} import "../specification/raw-http.ts";`)).toEqual([]);
  });
});

describe("imports between packages", () => {
  test.each([
    ["protocol", "agent-sdk"],
    ["agent-sdk", "client-sdk"],
    ["client-sdk", "agent-sdk"],
    ["relay-server", "agent-sdk"],
    ["agent-sdk", "tools"],
    ["client-sdk", "simulator"],
    ["simulator", "tools"],
  ])("%s may not import %s", (from, to) => {
    const rules = RULES.filter((rule) => rule.kind === "packages");
    const files = new Map([[`${from}/src/a.ts`, `\nimport "@blindrelay/${to}";`]]);
    expect(checkBoundaries(files, rules)).toMatchObject([
      { path: `${from}/src/a.ts`, line: 2, what: expect.stringContaining(`imports ${to}`) },
    ]);
  });

  test.each([
    ["a type", `import type { A } from "@blindrelay/agent-sdk";`],
    ["several types", `import type {\n  A,\n} from "@blindrelay/agent-sdk";`],
    ["a type in place", `let a: import("@blindrelay/agent-sdk").A;`],
    ["an exported type", `export type { A } from "@blindrelay/agent-sdk";`],
  ])("%s counts too", (_, text) => {
    expect(check({ "client-sdk/src/a.ts": text })).toHaveLength(1);
  });

  test("so does a test", () => {
    expect(check({ "client-sdk/src/a.test.ts": `import "@blindrelay/agent-sdk";` })).toHaveLength(
      1,
    );
  });

  test("a package is imported by its name, not by a path into it", () => {
    const text = `import { MAX } from "../../protocol/src/spec.ts";`;
    expect(check({ "agent-sdk/src/a.ts": text })).toEqual([
      expect.stringContaining("a path into protocol"),
    ]);
    const deeper = text.replace("../../", "../../../../");
    expect(check({ "test/src/instruments/secrets/a.ts": deeper })).toEqual([]);
  });
});

describe("no cycles", () => {
  test("two files that import each other, if only for a type", () => {
    const found = check({
      "tools/src/serial/a.ts": `import { b } from "./b.ts"; export type A = number;`,
      "tools/src/serial/b.ts": `import type { A } from "./a.ts"; export const b: A = 1;`,
    });
    expect(found).toEqual([
      "tools/src/serial/a.ts:1 a cycle: tools/src/serial/a.ts -> tools/src/serial/b.ts -> tools/src/serial/a.ts",
    ]);
  });

  test("two folders that import each other, although no two files do", () => {
    const [found, ...others] = violationsOf({
      "tools/src/serial/a.ts": `import "../flash/a.ts";`,
      "tools/src/serial/b.ts": "",
      "tools/src/flash/a.ts": "",
      "tools/src/flash/b.ts": `\nimport "../serial/b.ts";`,
    });
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      rule: "no cycles of folders",
      what: "a cycle: tools/src/flash -> tools/src/serial -> tools/src/flash",
    });
    expect(found?.chain).toContain("tools/src/flash/b.ts:2");
  });

  test("a folder and one inside it that import each other", () => {
    const found = check({
      "tools/src/serial/a.ts": `import "./pty/a.ts";`,
      "tools/src/serial/b.ts": "",
      "tools/src/serial/pty/a.ts": `import "../b.ts";`,
    });
    expect(found).toEqual([
      "tools/src/serial/a.ts:1 a cycle: tools/src/serial -> tools/src/serial/pty -> tools/src/serial",
    ]);
  });

  test("a folder and src, whose files import each other's", () => {
    const found = check({
      "tools/src/cli.ts": `import "./serial/a.ts";`,
      "tools/src/failure.ts": "",
      "tools/src/serial/a.ts": `import "../failure.ts";`,
    });
    expect(found).toEqual([
      "tools/src/cli.ts:1 a cycle: tools/src -> tools/src/serial -> tools/src",
    ]);
  });

  test("a folder that comes back to another folder of the one it left", () => {
    const found = check({
      "tools/src/serial/lines/a.ts": `import "../../flash/a.ts";`,
      "tools/src/serial/pty/a.ts": "",
      "tools/src/flash/a.ts": `import "../serial/pty/a.ts";`,
    });
    expect(found).toEqual([
      "tools/src/flash/a.ts:1 a cycle: tools/src/flash -> tools/src/serial -> tools/src/flash",
    ]);
  });

  test("a program that starts another, and a test, belong to no cycle", () => {
    const found = check({
      "tools/src/serial/a.ts": `new Worker(new URL("./b.ts", import.meta.url));`,
      "tools/src/serial/b.ts": `import "./a.ts";`,
      "tools/src/serial/c.ts": "",
      "tools/src/serial/c.test.ts": `import "./c.ts";`,
    });
    expect(found).toEqual([]);
  });

  test("one folder may import another that does not import it", () => {
    const found = check({
      "tools/src/serial/a.ts": `import "../flash/a.ts"; import "./b.ts";`,
      "tools/src/serial/b.ts": `import "../flash/a.ts";`,
      "tools/src/flash/a.ts": "",
    });
    expect(found).toEqual([]);
  });
});

test("a file that cannot be parsed is a violation, not a gap", () => {
  expect(check({ "tools/src/a.ts": "const = ;" })).toHaveLength(1);
});

describe("the program", () => {
  const run = (files: Record<string, string>) => {
    const root = mkdtempSync(join(tmpdir(), "boundaries-"));
    onTestFinished(() => rmSync(root, { recursive: true }));
    for (const [path, text] of Object.entries({ ...PACKAGES, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const flags = ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "check.ts")];
    return spawnSync(process.execPath, [...flags, root], { encoding: "utf8" });
  };

  test("reports that all rules hold, with exit code 0", () => {
    expect(run({})).toMatchObject({
      status: 0,
      stdout: "boundaries: 7 files, 10 rules, all hold\n",
      stderr: "",
    });
  });

  test("reports where one does not, with exit code 1; node_modules and dist are ignored", () => {
    const text = `import "@blindrelay/protocol/crypto";`;
    const { status, stdout, stderr } = run({
      "relay-server/src/main.ts": `\n${text}`,
      "relay-server/dist/main.js": text,
      "relay-server/node_modules/a/index.js": text,
    });
    expect(status).toBe(1);
    expect(stdout).toBe("boundaries: 8 files, 10 rules, 1 violations\n");
    expect(stderr).toMatch(/^relay-server\/src\/main\.ts:2 {2}reaches protocol\/src\/crypto/);
  });
});
