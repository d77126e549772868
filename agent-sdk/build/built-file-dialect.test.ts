/**
 * Each rule of the dialect check with code that breaks it, from probes of a real Espruino
 * (docs/espruino.md); and that what Espruino runs passes.
 */
import { expect, it } from "vitest";
import { checkDialect } from "./built-file-dialect.ts";

const REGEX = "regex with {n}, (?, [ or / in a set, or | in a group";

const rules = (code: string): string[] => checkDialect(code).map(({ rule }) => rule);

it.each<[string, string, string]>([
  // Syntax that it cannot parse
  ["object destructuring", "const {a} = exports;", "syntax: ObjectPattern"],
  ["array destructuring", "const [a] = exports;", "syntax: ArrayPattern"],
  ["a destructured parameter", "exports.f = ({a}) => a;", "syntax: ObjectPattern"],
  ["spread in an array", "const a = []; exports.a = [...a];", "syntax: SpreadElement"],
  ["spread in a call", "const a = []; exports.a = Math.max(...a);", "syntax: SpreadElement"],
  ["spread in an object", "const a = {}; exports.a = {...a};", "syntax: SpreadElement"],
  ["rest parameters", "exports.f = (...a) => a;", "syntax: RestElement"],
  ["default parameters", "exports.f = (a = 1) => a;", "syntax: AssignmentPattern"],
  ["tagged templates", "const t = (s) => s; exports.a = t`x`;", "syntax: TaggedTemplateExpression"],
  ["labels", "a: for (;;) break a;", "syntax: LabeledStatement"],
  ["optional chaining", "exports.a = exports?.b;", "syntax: ChainExpression"],
  ["async functions", "exports.f = async () => 1;", "async or generator function"],
  ["await", "exports.f = async () => { await 1; };", "syntax: AwaitExpression"],
  ["generators", "exports.f = function* () {};", "async or generator function"],
  ["private names", "class A { #a = 1; }; exports.A = A;", "syntax: PrivateIdentifier"],
  ["computed keys", "const k = 'a'; exports.a = {[k]: 1};", "computed key"],
  ["computed methods", "const k = 'a'; class A { [k]() {} } exports.A = A;", "computed key"],
  ["a field without a value", "class A { a; } exports.A = A;", "class field without a value"],
  ["BigInt", "exports.a = 1n;", "BigInt"],
  ["**", "exports.a = 2 ** 3;", "operator **"],
  ["**=", "let a = 2; a **= 3;", "operator **="],
  ["??=", "let a = null; a ??= 3;", "operator ??="],
  ["new.target", "exports.f = function () { return new.target; };", "syntax: MetaProperty"],
  [
    "function declarations, as they are not hoisted",
    "function f() {}",
    "syntax: FunctionDeclaration",
  ],
  ["var, as it is not hoisted", "var a = 1;", "var"],
  ["imports", "import('x');", "syntax: ImportExpression"],
  // Accepted, but wrong without an error
  [
    "closures over a loop's let",
    "for (let i = 0; i < 3; i++) exports.f = () => i;",
    "captured loop variable i",
  ],
  [
    "closures over a for-of const",
    "for (const a of [1, 2]) exports.f = () => a;",
    "captured loop variable a",
  ],
  [
    "arrows in class fields, which have no this",
    "class A { f = () => this; } exports.A = A;",
    "class field that all objects would share",
  ],
  [
    "arrays in class fields, which all objects share",
    "class A { a = []; } exports.A = A;",
    "class field that all objects would share",
  ],
  [
    "objects in class fields",
    "class A { a = {}; } exports.A = A;",
    "class field that all objects would share",
  ],
  [
    "'use strict', which does nothing",
    "'use strict'; exports.a = 1;",
    "directive (does nothing there)",
  ],
  ["{n} in a regular expression", "exports.a = /a{2}/.test('');", REGEX],
  ["(?:) in a regular expression", "exports.a = /(?:a)/.test('');", REGEX],
  ["lookahead", "exports.a = /a(?=b)/.test('');", REGEX],
  ["[ in a set", "exports.a = /[,[]/.test('');", REGEX],
  ["/ in a set, which ends the expression", "exports.a = /[\"/]/.test('');", REGEX],
  ["alternatives in a group", "exports.a = /(^|b)a/.test('');", REGEX],
  [
    "use before definition",
    "exports.f = () => g(); const h = g; const g = 1;",
    "unknown or later defined name g",
  ],
  [
    "atob, which decodes invalid base64",
    "exports.a = atob('x');",
    "unknown or later defined name atob",
  ],
  [
    "delete inside for-in, which skips keys",
    "const o = {}; for (const k in o) delete o[k];",
    "delete inside for-in",
  ],
  ["an assignment to an array's length", "const a = []; a.length = 0;", "assignment to length"],
  ["subclasses of Error", "class A extends Error {} exports.A = A;", "class that extends Error"],
  ["WeakMap", "exports.a = WeakMap;", "unknown or later defined name WeakMap"],
  [
    "Number.MAX_SAFE_INTEGER, which is undefined",
    "exports.a = Number.MAX_SAFE_INTEGER;",
    "member .MAX_SAFE_INTEGER",
  ],
  ["__proto__", "exports.a = {}.__proto__;", "member .__proto__"],
  ["Date", "exports.a = new Date();", "unknown or later defined name Date"],
  ["a global by a fixed name", "exports.a = global.Date;", "global.Date"],
  // Built-ins that are missing
  ...[
    ..."Map Set Symbol Proxy Reflect BigInt TextEncoder TextDecoder RangeError queueMicrotask structuredClone crypto globalThis Buffer".split(
      " ",
    ),
  ].map((name): [string, string, string] => [
    name,
    `exports.a = ${name};`,
    `unknown or later defined name ${name}`,
  ]),
  ...[..."imul trunc log2 clz32".split(" ")].map((name): [string, string, string] => [
    `Math.${name}`,
    `exports.a = Math.${name}(1);`,
    `member .${name}`,
  ]),
  ["Math.hypot, which was not probed", "exports.a = Math.hypot(1);", "Math.hypot"],
  ["Object.freeze", "exports.a = Object.freeze({});", "member .freeze"],
  ["Object.entries, which was not probed", "exports.a = Object.entries({});", "Object.entries"],
  ["Array.from", "exports.a = Array.from('a');", "member .from"],
  ["Uint8Array.of", "exports.a = Uint8Array.of(1);", "member .of"],
  ["Number.isInteger", "exports.a = Number.isInteger(1);", "member .isInteger"],
  ["Promise.race", "exports.a = Promise.race([]);", "member .race"],
  ["Promise.finally", "exports.a = Promise.resolve(1).finally(() => {});", "member .finally"],
  ["flat", "exports.a = [].flat();", "member .flat"],
  ["at", "exports.a = [].at(0);", "member .at"],
  ["codePointAt", "exports.a = 'a'.codePointAt(0);", "member .codePointAt"],
  ["replaceAll", "exports.a = 'a'.replaceAll('a', 'b');", "member .replaceAll"],
  [
    "a typed array's slice, which is an Array",
    "exports.a = new Uint8Array(1).slice(0);",
    "member .slice",
  ],
])("refuses %s", (_what, code, rule) => {
  expect(rules(code)).toContain(rule);
});

it.each([
  "const f = (a, b) => a + b; exports.f = f;",
  "class A { n = 0; s = ''; z = null; m = -1; f() { return this.n; } } class B extends A { f() { return super.f(); } } exports.B = B;",
  "for (const a of [1]) { let s = 0; s += a; exports.s = s; }",
  "for (const a of [1]) exports.f(() => 1);",
  "for (const a of [1]) { const b = a; exports.f = () => b; }",
  `const a = \`x$\{1}y\`; exports.a = a ?? null;`,
  "try { exports.a = JSON.parse('{'); } catch { exports.a = undefined; } finally { exports.b = 1; }",
  "const f = (n) => (n === 0 ? 0 : f(n - 1)); exports.f = f;",
  "const b = new Uint8Array(4); b.set([1], 1); b.fill(0); exports.c = b.subarray(1, 2); exports.d = new Int32Array(b.buffer);",
  "class Box { constructor() { this.length = 0; } clear() { this.length = 0; } } exports.Box = Box;",
  "switch (exports.a) { case 1: break; default: exports.b = 2; }",
  "const name = 'Serial1'; exports.a = global[name];",
  "let i = 0; do { i++; } while (i < 3); while (i > 0) i--;",
])("accepts what Espruino runs: %s", (code) => {
  expect(rules(code)).toEqual([]);
});

it("accepts a guarded name", () => {
  expect(checkDialect("exports.a = atob('');", ["atob"])).toEqual([]);
});
