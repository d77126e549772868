/**
 * Pushed programs that fail in every way: the end of a program that registered its handlers,
 * and the reason that the board reports.
 */
export const FAILURES: readonly (readonly [what: string, body: string, reason: RegExp])[] = [
  ["throws", 'throw new Error("no sensor");', /no sensor/],
  [
    "throws later",
    'setTimeout(() => { throw new Error("no answer"); }, 1500);',
    /no answer|it threw/,
  ],
  [
    "rejects later",
    'setTimeout(() => { Promise.reject(new Error("no answer")); }, 1500);',
    /no answer|nhandled/,
  ],
  ["loops", "while (true);", /it restarted/],
  ["loops later", "setTimeout(() => { while (true); }, 1500);", /it restarted/],
  ["loops in promises", "const f = () => Promise.resolve(1).then(f); f();", /memory|restarted/],
  ["uses all memory", "const a = []; while (true) a.push({ b: [1, 2, 3] });", /memory|restarted/],
  [
    "uses all memory bit by bit",
    `const a = [];
     setInterval(() => { for (let i = 0; i < 100; i++) a.push({ b: [1, 2, 3] }); }, 50);`,
    /memory|restarted/,
  ],
  [
    "fills the list of timers",
    "const f = () => { setTimeout(f, 1); setTimeout(f, 1); }; f();",
    /memory|restarted/,
  ],
  [
    "fills the queue of events",
    `LoopbackB.on("data", () => { const end = getTime() + 0.2; while (getTime() < end); });
     setInterval(() => LoopbackA.write("x".repeat(2000)), 1);`,
    /memory|restarted|confirmed/,
  ],
];
