/** What each pass over the built file does, and what it leaves alone. */
import { createContext, runInContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { IMITATE_FUNCTION, untokenise, untokeniseFunction } from "../src/testing/untokenise.ts";
import { inlineConstants } from "./constants.ts";
import { joinDeclarations } from "./declarations.ts";
import { prefixGlobals } from "./globals.ts";
import { inlineSmall } from "./inline.ts";
import { makeLazy } from "./lazy.ts";
import { dropUnusedMethods, shortenNames } from "./members.ts";
import { fieldsToConstructors, methodsToFunctions } from "./methods.ts";
import type { Piece } from "./piece.ts";
import { markStored, storedNames, storeFunctions, unmarked } from "./stored.ts";
import { tokenise } from "./tokens.ts";

const piece = (path: string, code: string, exported: string[] = []): Piece => ({
  path,
  exported,
  code,
});
const tidy = (code: string): string => code.replace(/\s+/g, " ").trim();

describe("constants", () => {
  const inlined = (...codes: string[]): string =>
    tidy(
      inlineConstants(codes.map((code, i) => piece(`${i}.ts`, code)))
        .map(({ code }) => code)
        .join("\n"),
    );

  it("are written where they are used, across modules and in arithmetic", () => {
    expect(
      inlined("const S = 60; const MS = S * 1000;", "const f = (n) => n > MS ? 'a' : S;"),
    ).toBe("const f = (n) => n > 60000 ? 'a' : 60;");
  });

  it("keep a sign in parentheses, and a shorthand property its name", () => {
    expect(inlined("const LOW = -5; const f = (n) => n-LOW; const g = () => ({ LOW });")).toBe(
      "const f = (n) => n-(-5); const g = () => ({ LOW: (-5) });",
    );
  });

  it("stay if they are long strings, objects, or results of a call", () => {
    const code =
      "const A = 'a text of some length'; const B = [1]; const C = f(1); const g = () => A;";
    expect(inlined(code)).toBe(code);
  });

  it("become part of the text of a template", () => {
    const use = (name: string): string => `\${${name}}`;
    const code = inlined(
      `const K = 'on'; const T = \`{"${use("K")}":\`; const f = (x) => \`{"${use("K")}":${use("x")}}\`; const g = () => T;`,
    );
    expect(code).toBe(`const f = (x) => \`{"on":${use("x")}}\`; const g = () => "{\\"on\\":";`);
    const odd = inlined(`const K = '\`$\\\\'; const f = (x) => \`${use("K")}{x}${use("x")}\`;`);
    expect(new Function(`${odd}; return f(1)`)()).toBe("`$\\{x}1");
  });

  it("are not confused with an inner name", () => {
    expect(() => inlined("const N = 1; const f = (N) => N;")).toThrow("N is declared twice");
  });
});

describe("lazy modules", () => {
  const pieces = [
    piece(
      "src/table.ts",
      "const TABLE = { a: 1 };\nconst hidden = 2;\nconst look = (k) => TABLE[k] + hidden;",
      ["look", "TABLE"],
    ),
    piece("src/use.ts", "const use = () => look('a');", ["use"]),
  ];

  it("become a function that is called at each use and returns what others use", () => {
    const [table, use] = makeLazy(pieces, (path) => (path === "src/table.ts" ? path : null)).map(
      ({ code }) => tidy(code),
    );
    expect(use).toBe("const use = () => makeTable()('a');");
    expect(table).toMatch(/^const makeTable = \(\) => \{ .* return look; \};$/);
  });

  it("contain nothing unused, nor what only unused code names", () => {
    const spare = piece(
      "src/table.ts",
      "const a = 1; const b = () => a; const c = 2; const look = () => c;",
      ["b", "look"],
    );
    const [table] = makeLazy(
      [spare, piece("src/use.ts", "const use = () => look();", [])],
      (path) => (path.endsWith("table.ts") ? path : null),
    );
    expect(tidy(table?.code ?? "")).toBe(
      "const makeTable = () => { const c = 2; const look = () => c; return look; };",
    );
  });

  it("with one name are made together", () => {
    const two = [
      piece("src/a.ts", "const a = () => 1;", ["a"]),
      piece("src/b.ts", "const b = () => a() + 1;", ["b"]),
      piece("src/use.ts", "const use = () => b() + a();", []),
    ];
    const made = makeLazy(two, (path) => (path === "src/use.ts" ? null : "src/both.ts"));
    expect(made.map(({ code }) => tidy(code))).toEqual([
      "const makeBoth = () => { const a = () => 1; const b = () => a() + 1; return { a: a, b: b }; };",
      "const use = () => makeBoth().b() + makeBoth().a();",
    ]);
  });

  it("behave as before", () => {
    const code = makeLazy(pieces, (path) => path)
      .map((one) => one.code)
      .join("\n");
    expect(new Function(`${code}\nreturn makeUse`)).not.toThrow();
    const half = makeLazy(pieces, (path) => (path === "src/table.ts" ? path : null))
      .map((one) => one.code)
      .join("\n");
    expect(new Function(`${half}\nreturn use()`)()).toBe(3);
  });
});

describe("methods", () => {
  const CODE = `class A {
    constructor(n) { this.n = n; this.start(); }
    often(x) { return [1, 2].map((i) => this.sum(this.twice(x), i)); }
    twice(x) { const sum = this.self().sum(x, x); return this.one() ? sum : 0; }
    sum(a, b) { return this.n + a + b; }
    self() { return (this); }
    one() { return this.n > 0; }
    start() {}
    size() { return 1; }
  }
  class B { one() { return new Map().size; } }
  const f = (n) => new A(n).often(3);`;
  const made = (code: string): string =>
    methodsToFunctions(code, { isOurs: (name) => name !== "start", isPrivate: () => false });

  it("become functions of their object, also inside calls of each other", () => {
    const code = tidy(made(CODE));
    expect(code).toContain(
      "const twiceOfA = (thisObject, x) => { const sum = sumOfA(selfOfA(thisObject), x, x);",
    );
    expect(code).toContain("sumOfA(thisObject, twiceOfA(thisObject, x), i)");
    expect(code).toContain("const f = (n) => oftenOfA(new A(n), 3);");
  });

  it("stay where another class has the name, the list says so, or it is used as a value", () => {
    const code = tidy(made(CODE));
    expect(code).toMatch(
      /class A \{ constructor\(n\) .* one\(\) .* start\(\) \{\} size\(\) \{ return 1; \} \}/,
    );
    expect(code).toContain("return thisObject.one() ? sum : 0;");
    expect(made("class A { a() {} b() { return super.a(); } }")).toContain("a() {}");
    expect(made("class A { a() {} }; f({ a: 1 });")).toContain("a() {}");
    expect(made("class A { a() {} }; f('a');")).toContain("a() {}");
  });

  it("behave as before", () => {
    const run = (code: string): unknown => new Function(`${code}\nreturn f(5)`)();
    expect(run(made(CODE))).toEqual(run(CODE));
    expect(run(CODE)).toEqual([17, 18]);
  });
});

describe("class fields", () => {
  it("are assigned first in the constructor, unless the class extends another", () => {
    const code = "class A { n = 1; s = null; constructor(x) { this.x = x; } }";
    expect(tidy(fieldsToConstructors(code))).toBe(
      "class A { constructor(x) { this.n = 1; this.s = null; this.x = x; } }",
    );
    const other = "class B extends A { n = 1; constructor() { super(); } } class C { n = 1; }";
    expect(fieldsToConstructors(other)).toBe(other);
  });
});

describe("stored functions", () => {
  const CODE = [
    `const a=inStorage(e=>b(e)+\`\${c(e,1)}\`),n=3;let none;`,
    "const b=inStorage(e=>{return{x:e,f:()=>c(e,n)}});const c=inStorage((e,n)=>e.x?0:e+n);",
    "class C{m(){return a(n)}}exports.a=a;exports.b=new C;",
  ];
  const { stored, bytes } = storeFunctions(CODE, "sdk");
  /** What a board does with it. */
  const load = (): { a: (n: number) => string; b: { m(): string } } => {
    const files = { read: (name: string) => (name === "sdk" ? stored : undefined) };
    const globals: Record<string, unknown> = { exports: {}, require: () => files };
    globals.hostFunction = untokeniseFunction;
    const context = createContext(globals);
    runInContext(IMITATE_FUNCTION, context);
    runInContext(untokenise(stored), context);
    return globals.exports as ReturnType<typeof load>;
  };

  it("are made from the text at their place at each use", () => {
    expect(load().a(2)).toBe("[object Object]3");
    expect(load().b.m()).toBe("[object Object]4");
    expect(stored).toMatch(/_1\(\d+\)\(n\)/);
  });

  it("are in the bytes of their piece", () => {
    expect(bytes).toHaveLength(3);
    expect(bytes.every((size) => size > 10)).toBe(true);
    expect(bytes.reduce((sum, size) => sum + size)).toBeLessThan(stored.length);
  });

  it("can be read without the pass, and are known by name", () => {
    expect(unmarked(CODE[1] as string)).toBe(
      "const b=e=>{return{x:e,f:()=>c(e,n)}};const c=(e,n)=>e.x?0:e+n;",
    );
    expect(CODE.flatMap(storedNames)).toEqual(["a", "b", "c"]);
  });

  it("are all but those that stay resident", () => {
    const code = markStored("const a = () => 1; const b = (x) => x; const c = 3;", new Set(["b"]));
    expect(code).toBe(
      "const a = /* @__PURE__ */ inStorage(() => 1); const b = (x) => x; const c = 3;",
    );
    // A call cannot be assigned.
    const listener = "let a = () => 1; const set = { on: (fn) => { a = fn; } };";
    expect(markStored(listener, new Set())).toBe(listener);
  });

  it("are refused with parameters that their maker does not name", () => {
    const odd = ["const a=inStorage((e,n)=>e);const b=inStorage(n=>n);"];
    expect(() => storeFunctions(odd, "sdk")).toThrow("has the parameters n");
  });
});

describe("small functions", () => {
  it("are inlined, including calls within calls", () => {
    const code = inlineSmall(
      "const a = (x) => x + 1; const b = (y) => a(y) * 2; const f = (n) => { return b(n.m); };",
    );
    expect(code).not.toMatch(/\b[ab]\(/);
    expect(new Function(`${code}\nreturn f({ m: 4 })`)()).toBe(10);
  });

  it.each([
    ["used as a value", "const a = (x) => x + 1; const f = [a];"],
    ["with a parameter used twice", "const a = (x) => x * x; const f = (n) => { return a(n()); };"],
    [
      "with parameters in a different order",
      "const a = (x, y) => y - x; const f = (n) => { return a(n(), n()); };",
    ],
    [
      "that may not evaluate an argument",
      "const a = (x, y) => x || y; const f = (n) => { return a(1, n()); };",
    ],
    ["with a closure", "const a = (x) => () => x; const f = (n) => { return a(n); };"],
    ["that assign", "let s = 0; const a = (x) => (s = x); const f = (n) => { return a(n); };"],
    [
      "whose free name means something else there",
      "const k = 1; const a = (x) => x + k; const f = (k) => { return a(k); };",
    ],
    ["with a body", "const a = (x) => { return x; }; const f = (n) => { return a(n); };"],
    [
      "that are exported",
      "const a = (x) => x + 1; const f = (n) => { return a(n); }; export { a as b };",
    ],
    [
      "called with a different number of arguments",
      "const a = (x) => x; const f = () => { return a(); };",
    ],
  ])("are not inlined %s", (_what, code) => {
    expect(inlineSmall(code)).toBe(code);
  });
});

describe("members", () => {
  it("are dropped if nothing names them, along with what only they named", () => {
    const code = dropUnusedMethods(
      "class A { constructor() {} used() {} kept() {} loop() { this.loop(); } only() {} gone() { this.only(); } } new A().used();",
      new Set(["kept"]),
    );
    expect(tidy(code)).toBe("class A { constructor() {} used() {} kept() {} } new A().used();");
  });

  const shortened = (code: string, source = "", keep: string[] = [], ours: string[] = []): string =>
    shortenNames(code, [source], new Set(keep), new Set(ours));

  it("become short if private in TypeScript, only after this", () => {
    const source =
      "class A { private secret = 1; private other = 2; declare readonly shared: number; private shared2 = 1 }";
    expect(shortened("class A { secret = 1; f() { return this.secret; } }", source)).toBe(
      "class A { a = 1; f() { return this.a; } }",
    );
    const outside = "class A { other = 1; f(b) { return b.other; } }";
    expect(shortened(outside, source)).toBe(outside);
  });

  it("become short if they are camelCase and ours", () => {
    expect(shortened("const f = (o) => ({ maxSize: o.maxSize });")).toBe(
      "const f = (o) => ({ a: o.a });",
    );
  });

  it("become short where the build lists them, except built-ins and those named in a string", () => {
    const code = "class A { put(b) { this.length = b.put; } } const f = (a) => a.put(a.key);";
    expect(shortened(code, "", [], ["put", "key"])).toBe(
      "class A { a(b) { this.length = b.a; } } const f = (a) => a.a(a.key);",
    );
    expect(shortened(`${code} own(a, "put");`, "", [], ["put"])).toBe(`${code} own(a, "put");`);
  });

  it("get unused names, the most frequent the shortest", () => {
    const all = Array.from({ length: 60 }, (_, i) => `longName${i}: ${i}`).join();
    const code = `const f = () => ({ a: 1, ${all} }); const g = (o) => o.longName59 + o.longName59;`;
    const keys = [...shortened(code).matchAll(/(\w+): \d/g)].map((match) => match[1] as string);
    expect(new Set(keys).size).toBe(61);
    expect(keys.at(-1)).toBe("b");
    for (const word of ["at", "do", "if", "in", "of", "on"]) expect(keys).not.toContain(word);
  });

  it.each([
    ["made elsewhere", "const f = (text) => text.charCodeAt(0);"],
    ["named in a string", "const f = (o) => ({ maxSize: o['maxSize'] });"],
    [
      "on the wire, in snake_case",
      "const f = (o) => ({ agent_id: o.agent_id, payload: o.payload });",
    ],
  ])("keep their name if it is %s", (_what, code) => {
    expect(shortened(code)).toBe(code);
  });

  it("keep their name if a device program reads it", () => {
    const code = "const f = () => ({ waitMs: 1 });";
    expect(shortened(code, "", ["waitMs"])).toBe(code);
  });
});

describe("declarations", () => {
  it("are joined if they are consecutive, of the same kind and in the same block", () => {
    const code = "const a=1;const b=()=>{let c;let d=a;return c};let e;e=b;let f;for(let g=0;;);";
    expect(joinDeclarations(code)).toBe(
      "const a=1,b=()=>{let c,d=a;return c};let e;e=b;let f;for(let g=0;;);",
    );
  });
});

describe("tokens", () => {
  /** Bytes as [number], so that a test is readable. */
  const tokens = (code: string): string =>
    tokenise(code).replace(/[\x80-\xff]/g, (byte) => `[${byte.charCodeAt(0)}]`);

  it.each([
    [
      "words, without the spaces around them",
      "const a=b=>{return this};",
      "[174]a=b[162]{[171][175]};",
    ],
    [
      "operators of two or more characters",
      "a===b&&c>>>1!==(d??e)",
      "a[139]b[158]c[147]1[141](d[208]e)",
    ],
    ["`undefined`, which elsewhere is an ordinary name", "f(undefined)", "f([183])"],
  ])("stand for %s", (_what, code, written) => {
    expect(tokens(code)).toBe(written);
  });

  it("have the numbers of Espruino's list in src/jslex.h", () => {
    expect(tokens("a==b")).toBe("a[138]b");
    expect(tokens("if(a)b();")).toBe("[163](a)b();");
    expect(tokens("for(const a of b);")).toBe("[167]([174]a[198]b);");
  });

  it.each([
    ["a property", "a.catch(b).delete"],
    ["a key", "a={if:1}"],
    ["a text", 'a="return this"'],
    ["a template, which is parsed later", "a=`$" + "{b===c} of this`"],
    ["a regular expression", "a=/this/"],
  ])("do not replace words in %s", (_what, code) => {
    expect(tokens(code)).toBe(code);
  });

  it("keep a space where two operators would merge, and a newline that ends a statement", () => {
    expect(tokens("a=b+ +c")).toBe("a=b+ +c");
    expect(tokens("a()\nb()")).toBe("a()\nb()");
  });
});

describe("globals", () => {
  it("are prefixed with $ at every use, and nothing else is", () => {
    const code =
      "const a=1;class B{a(){return this.a}}const f=b=>{const c=a;return new B(c).a(f)+'a'};exports.a=f;";
    expect(prefixGlobals(code)).toBe(
      "const $a=1;class $B{a(){return this.a}}const $f=b=>{const c=$a;return new $B(c).a($f)+'a'};exports.a=$f;",
    );
    // The boot code's own global has that name.
    expect(prefixGlobals("const br=1,bs=br;")).toBe("const $$br=1,$bs=$$br;");
  });
});
