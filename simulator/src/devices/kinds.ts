/**
 * The device programs of a live run, each with the questions that a client asks and the check of
 * the answers. That check uses only the seed and earlier answers, never what the device's process
 * reports.
 */
import type { Program } from "@blindrelay/agent-sdk";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { Stream } from "../base/random-streams.ts";
import { bridge } from "./bridge.ts";
import { busy } from "./busy.ts";
import echo from "./echo.ts";
import sensor, { celsiusAt } from "./sensor.ts";
import valve from "./valve.ts";

export interface Question {
  method: string;
  params: unknown;
  right(result: unknown): boolean;
  /** What it is besides a call: `method` names an event, or what opens a stream. */
  kind?: "call" | "event" | "read" | "write";
  /** To write. */
  bytes?: number;
  /** The code with which it must fail. */
  fails?: string;
  /** Default: that of its load. */
  timeoutMs?: number;
  /** Who asks: so many clients after the device's own. Default: 0. */
  client?: number;
}

/** Asks one device; several questions may be open at a time. */
export interface Interview {
  /** `repeats`: the device may execute it more than once. */
  ask(repeats?: boolean): Question;
  /** The device has lost its state; questions without an answer may still reach it. */
  restarted(): void;
}

/** A bundled device program, and how its clients examine it. */
export interface Kind {
  name: string;
  program: Program;
  /** `name`: the agent's name, which its program sees too. */
  interview(name: string): Interview;
}

/** In the order in which a fleet uses them: agent i is of kind i modulo their number. */
export const KINDS: readonly Kind[] = [
  { name: "sensor", program: sensor, interview: interviewSensor },
  { name: "valve", program: valve, interview: interviewValve },
  { name: "echo", program: echo, interview: interviewEcho },
];

/** For searches; not in a fleet unless it is asked for. */
export const BUSY: Kind = {
  name: "busy",
  program: busy((fn, ms) => setInterval(fn, ms), Date.now),
  interview: repeating("busy.count", (result) => typeof fields(result).n === "number"),
};

/** For searches too. */
export const BRIDGE: Kind = {
  name: "bridge",
  program: bridge({
    timer: systemTimer(),
    random: (length) => crypto.getRandomValues(new Uint8Array(length)),
    date: () => new Date().toISOString(),
  }),
  interview: repeating(
    "serial.ports",
    (result) => (fields(result).ports as unknown[] | undefined)?.length === 2,
  ),
};

export function kindNamed(name: string): Kind {
  const kind = [...KINDS, BUSY, BRIDGE].find((one) => one.name === name);
  if (kind === undefined) throw new RangeError(`there is no kind ${name}`);
  return kind;
}

/** Readings that are remembered, to find one that comes twice. */
const REMEMBERED = 1_024;
/** Moves of a valve that are remembered: more than are open at once. */
const MAX_MOVES = 512;

/**
 * The readings count up (a failed call may have used one, and a repeated one several), each comes
 * once, and each is this sensor's value for its number. A question that is asked after an answer
 * has a later one.
 */
function interviewSensor(name: string): Interview {
  let asked = 0;
  let answered = 0;
  let last = 0;
  let start = 0;
  let isRepeated = false;
  const seen = new Set<number>();
  return {
    restarted() {
      start += 1;
      asked -= answered;
      answered = 0;
      last = 0;
      seen.clear();
    },
    ask(repeats = false) {
      asked += 1;
      isRepeated ||= repeats;
      const before = last;
      const from = start;
      return {
        method: "sensor.read",
        params: {},
        right(result) {
          const { reading, celsius } = fields(result);
          if (from !== start) return true;
          answered += 1;
          if (typeof reading !== "number" || reading <= before) return false;
          if (reading > asked && !isRepeated) return false;
          if (seen.has(reading)) return false;
          seen.add(reading);
          if (seen.size > REMEMBERED) seen.delete(seen.values().next().value as number);
          last = Math.max(last, reading);
          return celsius === celsiusAt(name, reading);
        },
      };
    },
  };
}

interface Move {
  readonly percent: number;
  /** When it was answered, and when a later one had surely followed it: in steps. */
  answered: number;
  over: number;
  /** It may happen again, after later ones: the packet that was repeated may come late. */
  mayRecur: boolean;
}

/**
 * The valve is where a move put it that no later one has surely followed, at some time since it was
 * asked: a move that is asked for after another one's answer is later than that one, one that has
 * no answer may still happen, and one that may be executed twice may happen again.
 */
function interviewValve(name: string): Interview {
  const never = Number.POSITIVE_INFINITY;
  const draws = new Stream(name);
  let asked = 0;
  let now = 0;
  const moves: Move[] = [{ percent: 0, answered: 0, over: never, mayRecur: false }];
  /** Who asks earlier than this may get a position that is no longer known. */
  let forgotten = 0;
  const end = (isOver: (move: Move) => boolean): void => {
    for (const move of moves) if (isOver(move)) move.over = Math.min(move.over, now);
  };
  const add = (move: Move): void => {
    moves.push(move);
    if (moves.length <= MAX_MOVES) return;
    const at = Math.max(
      0,
      moves.findIndex(({ over }) => over < never),
    );
    const [left] = moves.splice(at, 1) as [Move];
    forgotten = Math.max(forgotten, left.over);
  };
  return {
    restarted() {
      now += 1;
      for (const move of moves) move.mayRecur = false;
      end(({ answered }) => answered < never);
      add({ percent: 0, answered: now, over: never, mayRecur: false });
    },
    ask(repeats = false) {
      asked += 1;
      now += 1;
      const from = now;
      if (asked % 2 === 0) {
        return {
          method: "valve.state",
          params: {},
          right: (result) =>
            from < forgotten ||
            moves.some(
              ({ over, mayRecur, percent }) =>
                (over > from || mayRecur) && percent === fields(result).percent,
            ),
        };
      }
      const percent = draws.below(101);
      const move: Move = { percent, answered: never, over: never, mayRecur: repeats };
      add(move);
      return {
        method: "valve.open",
        params: { percent: move.percent },
        right(result) {
          now += 1;
          move.answered = now;
          end(({ answered }) => answered < from);
          return fields(result).percent === move.percent;
        },
      };
    },
  };
}

/** The same question again and again, whose answer depends on no other. */
function repeating(method: string, right: Question["right"]): () => Interview {
  return () => ({ restarted: () => undefined, ask: () => ({ method, params: {}, right }) });
}

/** The answer equals the params. */
function interviewEcho(name: string): Interview {
  const draws = new Stream(name);
  return {
    restarted: () => undefined,
    ask() {
      const params = drawParams(draws);
      const sent = JSON.stringify(params);
      return { method: "echo", params, right: (result) => JSON.stringify(result) === sent };
    },
  };
}

const TEXTS = ["", "grüße", "中文", "🚰", '"\\\u0000\n', "__proto__", "a".repeat(200)];
const NUMBERS = [0, -1, 0.1, 1e21, 2 ** 53 - 1, 5e-324];

function drawParams(draws: Stream): object {
  return {
    text: TEXTS[draws.below(TEXTS.length)],
    numbers: [NUMBERS[draws.below(NUMBERS.length)], draws.below(2 ** 32)],
    nested: { nothing: null, yes: draws.below(2) === 1, list: [[], {}] },
  };
}

function fields(result: unknown): Record<string, unknown> {
  return typeof result === "object" && result !== null ? (result as Record<string, unknown>) : {};
}
