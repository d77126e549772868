/**
 * What an attached board is and does, for a report by somebody who has one: known answers, memory,
 * times, Storage, randomness, watchdog and the line. Nothing in it is secret or names its owner.
 */
import { setTimeout as wait } from "node:timers/promises";
import { BoardError, type EspruinoRepl, readBoard } from "@blindrelay/agent-sdk/board";

/** A name and what was found, one line each. */
export type Row = readonly [name: string, found: string];

/** From reset() to the prompt. */
const RESET_MS = 500;
/** A step of a slow chip may take long, and is repeated. */
const SLOW_MS = 60_000;
const LINE_BYTES = 1_000;
const DRAWS = 32;
/** Of a wrong answer, as much is told. */
const MAX_WRONG = 100;
const TEST_FILE = "br.report";
/** The SDK's files, and the programs. */
const OURS =
  /^(blindrelay(\.json)?|program(\.1)?|\.bootcde|boot\.\w+|push\.\d|session|log\.last|text\.\d+)$/;

/** Typed once: bytes in hexadecimal, counted bytes, and the milliseconds of one call. */
const HELPERS = [
  "$h=function(b){var a=new Uint8Array(b),t='';for(var i=0;i<a.length;i++)t+=(256+a[i]).toString(16).substr(1);return t}",
  "$b=function(n,k){var a=new Uint8Array(n);for(var i=0;i<n;i++)a[i]=i*k;return a}",
  "$t=function(f){for(var n=1;;n*=2){var s=getTime();for(var i=0;i<n;i++)f();s=getTime()-s;if(s>0.1||n>4096)return Math.round(s*1e5/n)/100}}",
];

const CRYPTO = 'require("crypto")';
const STORAGE = 'require("Storage")';
const ECB = `{mode:"ECB"}`;

/** Expressions with one right value. */
const ANSWERS: readonly (readonly [name: string, expression: string, right: unknown])[] = [
  ["SHA-1", `$h(${CRYPTO}.SHA1("abc"))`, "a9993e364706816aba3e25717850c26c9cd0d89d"],
  [
    "SHA-256",
    `$h(${CRYPTO}.SHA256("abc"))`,
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  ],
  [
    "AES-128",
    `$h(${CRYPTO}.AES.encrypt($b(16,17),$b(16,1),${ECB}))`,
    "69c4e0d86a7b0430d8cdb78070b4c55a",
  ],
  ["CRC-32", 'E.CRC32("123456789")>>>0', 3_421_780_262],
  ["integers", "[-1>>>0,1<<31,0x7fffffff+1|0]", [4_294_967_295, -2_147_483_648, -2_147_483_648]],
  ["doubles", "[0.5+0.25,9007199254740991-1]", [0.75, 9_007_199_254_740_990]],
  ["base64", 'btoa(atob("AAEC/w=="))', "AAEC/w=="],
];

const TIMES: readonly (readonly [name: string, call: string])[] = [
  ["SHA-256 of 64 bytes", `${CRYPTO}.SHA256($d)`],
  ["SHA-256 of 1 KB", `${CRYPTO}.SHA256($e)`],
  ["AES-128 of a block", `${CRYPTO}.AES.encrypt($k,$k,${ECB})`],
  ["AES-128 of 256 bytes", `${CRYPTO}.AES.encrypt($f,$k,${ECB})`],
  ["100 additions", "for(var j=0,x=0;j<100;j++)x=x+j|0"],
  ["JSON of 100 bytes", "JSON.parse(JSON.stringify($j))"],
  ["garbage collection", "process.memory()"],
];
const DATA =
  "($d=$b(64,3),$e=$b(1024,3),$f=$b(256,3),$k=$b(16,1),$j={a:[1,2,3,4,5,6,7,8,9,10],b:'cdefghijklmnopqrstuvwxyz',c:1.5,d:null,e:true,f:'0123456789',g:{}},1)";

const seconds = (since: number): number => (performance.now() - since) / 1000;

class Reporter {
  private readonly board: EspruinoRepl;
  readonly rows: Row[] = [];
  /** Nothing more is done to the board. */
  isOver = false;

  constructor(board: EspruinoRepl) {
    this.board = board;
  }

  add(name: string, found: string): void {
    this.rows.push([name, found]);
  }

  private check(): void {
    if (this.isOver) throw new Error("the report is over");
  }

  private evaluate(expression: string, limitMs?: number): Promise<unknown> {
    this.check();
    return this.board.evaluate(expression, limitMs);
  }

  async all(): Promise<void> {
    await this.ask(
      "errors since the start",
      "E.getErrorFlags()",
      (flags) => (flags as string[]).join(" ") || "none",
    );
    await this.aboutRestart();
    await this.aboutMemory("memory with the program");
    await this.reset();
    await this.aboutEngine();
    await this.aboutMemory("memory");
    for (const helper of HELPERS) await this.evaluate(`(${helper},1)`);
    await this.aboutAnswers();
    await this.aboutTimes();
    await this.aboutStorage();
    await this.aboutLine();
    await this.aboutWatchdog();
    await this.aboutRandomness();
  }

  /** A row of what an expression gives; what the board throws is a finding. */
  async ask(
    name: string,
    expression: string,
    show: (value: unknown) => string = String,
  ): Promise<void> {
    let value: unknown;
    try {
      value = await this.evaluate(expression, SLOW_MS);
      this.add(name, show(value));
    } catch (error) {
      if (error instanceof BoardError) this.add(name, `not there (${error.said})`);
      // A value of another form than what is asked for.
      else if (error instanceof TypeError)
        this.add(name, `WRONG: ${JSON.stringify(value).slice(0, MAX_WRONG)}`);
      else throw error;
    }
  }

  /** Back to a board on which nothing runs. */
  async reset(): Promise<void> {
    this.check();
    await this.board.type("reset()");
    await wait(RESET_MS);
    await this.board.attach(true);
  }

  async aboutEngine(): Promise<void> {
    const found = await readBoard(this.board);
    this.add("engine", `Espruino ${found.version} ${found.board}`);
    await this.ask("commit", 'process.env.GIT_COMMIT||""');
    this.add("modules", found.modules.join(" "));
    this.add("strings", found.isWide ? "Unicode" : "8 bits");
    this.add("console", found.console ?? "unknown");
    const way = found.uart !== null ? "a UART" : found.wifi ? "its Wi-Fi" : "a network";
    this.add(
      "agent",
      found.agentId === null
        ? "not provisioned"
        : `packet version ${found.packetVersion}, over ${way}, ${found.push ? "accepts" : "no"} pushes`,
    );
    const ours = found.files.filter((name) => OURS.test(name));
    this.add("files", [...ours, `${found.files.length - ours.length} others`].join(" "));
  }

  async aboutMemory(name: string): Promise<void> {
    await this.ask(name, "process.memory()", (value) => {
      const { free, total, blocksize, stackFree } = value as Record<string, number | undefined>;
      const stack = stackFree === undefined ? "" : `, ${stackFree} bytes of stack free`;
      return `${free} of ${total} variables of ${blocksize} bytes free${stack}`;
    });
  }

  async aboutAnswers(): Promise<void> {
    for (const [name, expression, right] of ANSWERS) {
      await this.ask(name, expression, (value) =>
        JSON.stringify(value) === JSON.stringify(right)
          ? "right"
          : `WRONG: ${JSON.stringify(value)}`,
      );
    }
  }

  async aboutTimes(): Promise<void> {
    await this.evaluate(DATA);
    for (const [name, call] of TIMES)
      await this.ask(name, `$t(function(){${call}})`, (ms) => `${ms} ms`);
  }

  async aboutStorage(): Promise<void> {
    await this.ask(
      "Storage",
      `[${STORAGE}.getFree(),${STORAGE}.getStats?${STORAGE}.getStats():null]`,
      (value) => {
        const [free, stats] = value as [
          number,
          { totalBytes?: number; trashBytes?: number } | null,
        ];
        return `${free} bytes free of ${stats?.totalBytes ?? "?"}, ${stats?.trashBytes ?? "?"} erased`;
      },
    );
    const text = `"${"0123456789abcdef".repeat(16)}"`;
    const write = `(function(){var s=getTime(),o=${STORAGE}.write("${TEST_FILE}",${text}),e=getTime()-s,k=${STORAGE}.read("${TEST_FILE}")==${text};${STORAGE}.erase("${TEST_FILE}");return [o,k,Math.round(e*1e5)/100]})()`;
    await this.ask("a file of 256 bytes", write, (value) => {
      const [stored, same, ms] = value as [unknown, boolean, number];
      return stored !== true ? "NOT stored" : `${same ? "read back" : "read back WRONG"}, ${ms} ms`;
    });
  }

  /** The first draw after a restart is compared here, and not told. */
  async aboutRandomness(): Promise<void> {
    const draw = "E.hwRand()";
    await this.ask(
      "random",
      `(function(){var a=[],n=0;for(var i=0;i<${DRAWS};i++){var v=${draw};if(a.indexOf(v)>=0)n++;a.push(v)}return n})()`,
      (repeated) => `${DRAWS} draws, ${repeated} repeated`,
    );
    const firsts: unknown[] = [];
    for (let i = 0; i < 2; i++) {
      await this.reset();
      await this.ask("", draw, (value) => {
        firsts.push(value);
        return "";
      });
      this.rows.pop();
    }
    if (firsts.length === 2)
      this.add("random after reset()", firsts[0] === firsts[1] ? "the SAME" : "another");
  }

  async aboutWatchdog(): Promise<void> {
    const arm = (s: number): string => `(function(){E.enableWatchdog(${s},true);return 1})()`;
    let isArmed = false;
    await this.ask("watchdog of 25 s", arm(25), () => {
      isArmed = true;
      return "accepted";
    });
    // Not after the first: Nordic's keeps its first time, and would have 8 s then.
    if (!isArmed) await this.ask("watchdog of 8 s", arm(8), () => "accepted");
  }

  async aboutLine(): Promise<void> {
    const timed = async (expression: string): Promise<number> => {
      const since = performance.now();
      await this.evaluate(expression);
      return seconds(since);
    };
    const one = await timed("1");
    const there = await timed(`"${"x".repeat(LINE_BYTES)}".length`);
    const back = await timed(`new Array(${LINE_BYTES + 1}).join("x")`);
    const rate = (total: number): string =>
      total > one ? `${Math.round(LINE_BYTES / (total - one))} bytes/s` : "too fast to measure";
    this.add(
      "line",
      `a question ${Math.round(one * 1000)} ms, to the board ${rate(there)}, from it ${rate(back)}`,
    );
  }

  /** Nordic chips only: others have no such register, or not there. */
  async aboutRestart(): Promise<void> {
    await this.ask("reason of restart", 'typeof NRF=="object"?peek32(0x40000400):null', (value) =>
      value === null ? "unknown to the engine" : `RESETREAS 0x${Number(value).toString(16)}`,
    );
  }
}

/**
 * Ends what runs on the board, reports, and starts it again, also once `stopped` rejects. Rejects
 * as that does, or with a Failure (device).
 */
export const reportBoard = async (
  board: EspruinoRepl,
  stopped: Promise<never>,
): Promise<readonly Row[]> => {
  const reporter = new Reporter(board);
  await Promise.race([board.attach(true), stopped]);
  const reporting = reporter.all();
  try {
    await Promise.race([reporting, stopped]);
  } catch (error) {
    // Such as too little memory, which is worth reporting.
    if (!(error instanceof BoardError)) throw error;
    reporter.rows.push(["the report ended early", error.said]);
  } finally {
    reporter.isOver = true;
    // After a signal: until the board has answered what it was asked last.
    await reporting.catch(() => undefined);
    await board.type("load()").catch(() => undefined);
  }
  return reporter.rows;
};
