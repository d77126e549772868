/**
 * The device programs of a live run, each with the questions that a client asks and the check of
 * the answers. That check uses only the seed and earlier answers, never what the device's process
 * reports.
 */
import type { Program } from "@blindrelay/agent-sdk";
import { Stream } from "../random-streams.ts";
import echo from "./echo.ts";
import sensor, { celsiusAt } from "./sensor.ts";
import valve from "./valve.ts";

export interface Question {
  method: string;
  params: unknown;
  right(result: unknown): boolean;
}

/**
 * Asks one device, one question after another; `ask` is called again only after the last question
 * ended, successfully or not.
 */
export type Interview = { ask(): Question };

/** A device program of a fleet, as its clients see it. */
export interface Role {
  name: string;
  /** `name`: the agent's name, which its program sees too. */
  interview(name: string): Interview;
}

export interface Kind extends Role {
  program: Program;
}

/** A user's program: its calls in turn, for which any answer that is no error is correct. */
export function ownRole(
  name: string,
  calls: readonly { method: string; params?: unknown }[],
): Role {
  return {
    name,
    interview: () => {
      let asked = 0;
      return {
        ask() {
          const { method, params } = calls[asked++ % calls.length] as (typeof calls)[number];
          return { method, params, right: () => true };
        },
      };
    },
  };
}

/** In the order in which a fleet uses them: agent i is of kind i modulo their number. */
export const KINDS: readonly Kind[] = [
  { name: "sensor", program: sensor, interview: interviewSensor },
  { name: "valve", program: valve, interview: interviewValve },
  { name: "echo", program: echo, interview: interviewEcho },
];

export function kindOf(index: number): Kind {
  return KINDS[index % KINDS.length] as Kind;
}

export function kindNamed(name: string): Kind {
  const kind = KINDS.find((one) => one.name === name);
  if (kind === undefined) throw new RangeError(`there is no kind ${name}`);
  return kind;
}

/**
 * The readings count up (a failed call may have used one), and each is this sensor's value for its
 * number.
 */
function interviewSensor(name: string): Interview {
  let asked = 0;
  let last = 0;
  function right(result: unknown): boolean {
    const { reading, celsius } = fields(result);
    if (typeof reading !== "number" || reading <= last || reading > asked) return false;
    last = reading;
    return celsius === celsiusAt(name, reading);
  }
  return {
    ask() {
      asked += 1;
      return { method: "sensor.read", params: {}, right };
    },
  };
}

/**
 * The valve is at its last commanded position; after a move of unknown outcome, there or at its
 * previous one.
 */
function interviewValve(name: string): Interview {
  const draws = new Stream(name);
  let asked = 0;
  let possible = [0];
  return {
    ask() {
      asked += 1;
      if (asked % 2 === 0) {
        return {
          method: "valve.state",
          params: {},
          right: (result) => possible.includes(fields(result).percent as number),
        };
      }
      const percent = draws.below(101);
      possible.push(percent);
      return {
        method: "valve.open",
        params: { percent },
        right(result) {
          possible = [percent];
          return fields(result).percent === percent;
        },
      };
    },
  };
}

/** The answer equals the params. */
function interviewEcho(name: string): Interview {
  const draws = new Stream(name);
  return {
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
