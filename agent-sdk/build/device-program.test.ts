/** How a device program is converted for a board, and every refusal with its position. */
import { runInNewContext } from "node:vm";
import { crc32 } from "node:zlib";
import { expect, it } from "vitest";
import type { DeviceStorage } from "../src/core/storage.ts";
import { checkProgram, readBoardModule, toModule, withModules } from "./device-program.ts";

/** What `require` would return. */
const loaded = (code: string): unknown =>
  runInNewContext(`(function(module){${code}\nreturn module.exports})({exports:{}})`);

it.each([
  ["an arrow", "export default (agent) => { agent.x = 1; };"],
  [
    "a function without a semicolon",
    "export default function (agent) { agent.x = 1; }\n(() => 1)();",
  ],
  ["a named function", "export default function lamp(agent) { agent.x = 1; }"],
  ["a name", "const lamp = (agent) => { agent.x = 1; };\nexport default lamp;"],
  ["a comment in between", "export default /* the lamp */ (agent) => { agent.x = 1; } // it"],
  ["other exports", "export const pin = 1;\nexport default (agent) => { agent.x = pin; };"],
  [
    "the words in a string",
    'const t = "export default 5";\nexport default (agent) => { agent.x = t.length - 15; };',
  ],
])("takes %s", (_what, source) => {
  const agent = { x: 0 };
  (loaded(toModule(source)) as (agent: object) => void)(agent);
  expect(agent.x).toBe(1);
});

it("drops comments without moving any line or column", () => {
  const source =
    "/* one\n   two */\nexport default (agent) => {\n  agent.x = `a  \n b`.length; // end\n};\n";
  const code = toModule(source);
  expect(code.split("\n")).toHaveLength(source.split("\n").length);
  expect(code).not.toMatch(/one|two|end/);
  expect(code).toContain("`a  \n b`");
});

it("writes text as UTF-8 in the bytes of a string", () => {
  expect(toModule('export default () => "21 °C";')).toContain("21 \\xc2\\xb0C");
});

const PROGRAM = "export default (agent) => {\n  HERE\n};";

/** The position in a program's body that is refused, and part of the message. */
it.each([
  ["agent.a = agent?.b;", "2:13", "ChainExpression", "test for null"],
  ["const a = [...agent.b];", "2:14", "SpreadElement", "concat"],
  ["const f = async () => 1;", "2:13", "async", "then"],
  ["const { a } = agent;", "2:9", "ObjectPattern", "one by one"],
  ["const f = (a = 1) => a;", "2:14", "AssignmentPattern", "undefined"],
  ["agent.a ??= 1;", "2:3", "operator ??=", "write the assignment out"],
  ["var a = 1;", "2:3", "var", "let or const"],
  ["agent.a = new Map();", "2:17", "unknown name Map", "boards do not have it"],
  ["/* a */ agent.a = agent?.b; // b", "2:21", "ChainExpression", "test for null"],
  ["const f = async () => { for await (const a of agent.b) a(); };", "2:27", "for await", "then"],
  ["agent.a = agent.b.slice(1);", "2:13", "member .slice", "substring"],
  ["agent.a = agent.b.flat();", "2:13", "member .flat", "another way"],
  ["agent.a = function () { return new.target; };", "2:34", "MetaProperty", "another way"],
  ["for (const k in agent) delete agent[k];", "2:26", "delete inside for-in", "Object.keys"],
  ["agent.a = import('x');", "2:13", "ImportExpression", "into this file"],
  ["agent.a = import.meta.url;", "2:13", "import.meta", ""],
  ["agent.a = (;", "2:14", "cannot be read: Unexpected token", ""],
])("refuses %s at %s", (line, place, rule, fix) => {
  const { refused } = checkProgram(PROGRAM.replace("HERE", line));
  const found = refused.map((refusal) => ({ ...refusal, at: `${refusal.line}:${refusal.column}` }));
  expect(found).toContainEqual(
    expect.objectContaining({ at: place, rule: expect.stringContaining(rule) }),
  );
  const { fix: said } = found.find(({ at }) => at === place) ?? {};
  expect(said ?? "").toContain(fix);
});

it("tells of a place once", () => {
  const { refused, asked } = checkProgram(PROGRAM.replace("HERE", "agent.a = Object.freeze({});"));
  expect(refused).toHaveLength(1);
  expect(asked).toEqual([]);
});

it.each([
  ["import fs from 'node:fs';\nexport default () => 1;", "1:1", "imports nothing"],
  ["\nexport * from './x.js';\nexport default () => 1;", "2:1", "re-exports"],
  ["const x = 1;", "1:1", "does not export a function"],
  ["await 1;\nexport default () => 1;", "1:1", "syntax: AwaitExpression"],
])("refuses %j at %s", (source, place, rule) => {
  const [first] = checkProgram(source).refused;
  expect(`${first?.line}:${first?.column}`).toContain(place);
  expect(first?.rule).toContain(rule);
});

it("refuses an import once, and looks at the rest", () => {
  const code = 'import fs,\n  { b } from "fs";\nexport default (agent) => { fs.x(b); label: 1; };';
  const { refused, asked } = checkProgram(code);
  expect(refused.map(({ line, column }) => `${line}:${column}`)).toEqual(["1:1", "3:38"]);
  expect(asked).toEqual([]);
});

it("reports refusals in source order, and none for a valid program", () => {
  const code = PROGRAM.replace("HERE", "const { a } = agent; const b = a?.c; return [...b];");
  const columns = checkProgram(code).refused.map(({ column }) => column);
  expect(columns.length).toBeGreaterThan(2);
  expect(columns).toEqual(columns.toSorted((a, b) => a - b));
  expect(checkProgram(PROGRAM.replace("HERE", "agent.handle('a', () => 1);"))).toEqual({
    refused: [],
    asked: [],
    modules: [],
  });
});

it("turns text into UTF-8, a byte to a character, and leaves escapes of bytes as they are", () => {
  const utf8 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
  const source = `export default (agent) => {
    agent.x = ["Küche … 🌱", '\\u20ac\\ud83c\\udf31', "\\u{1F331}\\u0022\\u00fc", \`—\${1}é\`, "\\xff\\x01", "\\\\u20ac"];
    agent.y = { "š": 1, 'a\\n': 2 };
  };`;
  expect(checkProgram(source)).toMatchObject({ refused: [], asked: [] });
  expect(toModule(source)).toMatch(/^[\0-\x7f]*$/);
  const agent = { x: [], y: {} };
  (loaded(toModule(source)) as (given: typeof agent) => void)(agent);
  const texts = ["Küche … 🌱", "€🌱", '🌱"ü', "—1é"].map(utf8);
  expect(agent.x).toEqual([...texts, "\xff\x01", "\\u20ac"]);
  expect(agent.y).toEqual({ [utf8("š")]: 1, "a\n": 2 });
});

it("escapes characters for a board with Unicode strings", () => {
  const source = `/* … */
/* two
lines … */ export default (agent) => { agent.x = "Küche … 🌱" + '€' + \`—\`; };`;
  expect(checkProgram(source, true)).toMatchObject({ refused: [], asked: [] });
  expect(toModule(source, true)).toMatch(/^[\0-\x7f]*$/);
  const agent = { x: "" };
  (loaded(toModule(source, true)) as (given: typeof agent) => void)(agent);
  expect(agent.x).toBe("Küche … 🌱€—");
});

it.each([
  ["const größeΩ = 1;", "outside of strings"],
  ["agent.x = /€/;", "outside of strings"],
  ["agent.x = /[\\u00e0-\\u00ff]/;", "outside of strings"],
  ["const \\u00e9 = 1;", "outside of strings"],
  ["agent.x = `$" + "{agent.y} \\u20ac`;", "template"],
  ["agent.x = `$" + "{agent.y} €`;", "template"],
])("refuses what no escape can express: %s", (line, rule) => {
  const source = `/* over\ntwo lines */ export default (agent) => { ${line} };`;
  const { refused } = checkProgram(source, true);
  expect(refused).toContainEqual(
    expect.objectContaining({ line: 2, rule: expect.stringContaining(rule) }),
  );
});

it("has names checked on the board that only a board knows", () => {
  const { refused, asked } = checkProgram(
    "export default (agent) => { agent.handle('t', () => E.getTemperature() + analogRead(D13) * Math.random()); };",
  );
  expect(refused).toEqual([]);
  expect(asked).toEqual(["analogRead", "D13", "Math.random"]);
});

it("lists the modules that a program requires by a literal name, but the SDK", () => {
  const { modules } = checkProgram(
    `// require("Comment")
    const dht = require("DHT22"), again = require("DHT22"), wifi = require(\`Wifi\`);
    export default (agent) => {
      agent.handle("t", () => require("Storage").read(require("blindrelay").x + 'require("Text")'));
      agent.y = require(agent.x);
    };`,
  );
  expect(modules).toEqual(["DHT22", "Wifi", "Storage"]);
});

it("carries modules along, each before what requires it, and keeps the program's lines", () => {
  const cached = new Map<string, unknown>();
  const evaluated: string[] = [];
  const evaluate = (code: string): unknown => {
    const module = { exports: {} };
    const Modules = {
      addCached: (name: string, load: () => void) => {
        const text = load.toString();
        cached.set(name, evaluate(text.slice(text.indexOf("{") + 1, -1)));
        evaluated.push(name);
      },
    };
    const require = (name: string): unknown => {
      if (!cached.has(name)) throw new Error(`Module ${name} not found`);
      return cached.get(name);
    };
    const run = runInNewContext(`(function(module,exports,require,Modules){${code}\n})`);
    run(module, module.exports, require, Modules);
    return module.exports;
  };
  const read = (code: string) =>
    readBoardModule(code) as Exclude<ReturnType<typeof readBoardModule>, { refused: unknown }>;
  const sensor = read(`/* require("Sensor") */ function Sensor(wire) { this.wire = wire; }
    Sensor.prototype.read = function() { return this.wire.get() + "°"; } // as text
    exports.connect = () => new Sensor(require("Wire")); // end`);
  expect(sensor.modules).toEqual(["Wire"]);
  expect(sensor.code).toMatch(/^[\0-\x7f]*$/);
  expect(sensor.code).not.toContain("as text");
  const wire = read("var n = 21; exports.get = function() { return n; };");
  const source = `const sensor = require("Sensor").connect();

export default (agent) => {
  agent.x = sensor.read();
};`;
  const code = withModules(toModule(source), [
    { ...wire, name: "Wire" },
    { ...sensor, name: "Sensor" },
  ]);
  const agent = { x: "" };
  (evaluate(code) as (agent: object) => void)(agent);
  expect(agent.x).toBe("21\xc2\xb0");
  expect(evaluated).toEqual(["Wire", "Sensor", "program"]);
  expect(code.split("\n")[3]).toBe("  agent.x = sensor.read();");
  expect(withModules("module.exports=1;", [])).toBe("module.exports=1;");
});

it("reports where a module cannot be read", () => {
  expect(readBoardModule("exports.x = 1;\nimport y from 'z';")).toMatchObject({
    refused: { line: 2, column: 1, rule: expect.stringContaining("cannot be read") },
  });
});

it("brings agent.storage along where the program has it", () => {
  const source = 'export default (agent) => { agent.x = agent.storage.get("a"); };';
  expect(toModule(source.replace(".storage", ".other"))).not.toContain("makeStorage");
  const flash = new Map([["text.3", "a 7 x 5"]]);
  const storage = {
    read: (name: string) => flash.get(name),
    write: (name: string, text: string) => flash.set(name, text) && true,
  };
  // What the file takes from the board.
  const E = {
    toUint8Array: (text: string) => Buffer.from(text, "latin1"),
    CRC32: (bytes: Buffer) => crc32(bytes),
  };
  const program = runInNewContext(
    `(function(module){${toModule(source)}\nreturn module.exports})({exports:{}})`,
    { E, require: () => storage, Uint8Array },
  );
  const agent = { x: "" as string | null, storage: null as DeviceStorage | null };
  program(agent);
  expect(agent.x).toBe(null);
  agent.storage?.set("a", "é");
  program(agent);
  expect(agent.x).toBe("é");
  expect(flash.get("text.16")).toMatch(/^a 1 %e9; \d+$/);
});
