/**
 * The mapping file of mode `lines`: how a device's line protocol becomes calls and events. Its JSON
 * Schema (`blindrelay bridge --schema`) is made from the definitions here.
 */

import { messageOf } from "@blindrelay/agent-sdk/bridge";
import { isChanged } from "@blindrelay/protocol/numbers";
import { parseJson } from "@blindrelay/protocol/parse-json";
import { type Static, Type } from "typebox";
import { Check, Errors } from "typebox/schema";
import type { LineEncoding } from "./line-reader.ts";

const strict = { additionalProperties: false } as const;

/** The pattern of a line, and its values. */
const Pattern = Type.Union([
  Type.String({
    description:
      "A regular expression over one line. Named groups become members of the result. {#} is the call's number.",
  }),
  Type.Object(
    {
      regex: Type.String(),
      numbers: Type.Optional(
        Type.Array(Type.String(), { description: "Named groups that are numbers." }),
      ),
    },
    strict,
  ),
  Type.Object(
    {
      json: Type.Record(Type.String(), Type.Unknown(), {
        description: "The line is a JSON object with these members; {} takes any object.",
      }),
    },
    strict,
  ),
]);

const Param = Type.Object(
  {
    type: Type.Optional(
      Type.Union(
        [
          Type.Literal("string"),
          Type.Literal("number"),
          Type.Literal("integer"),
          Type.Literal("boolean"),
        ],
        { default: "string" },
      ),
    ),
    pattern: Type.Optional(Type.String({ description: "A text must match all of it." })),
    enum: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Number()]))),
    minimum: Type.Optional(Type.Number()),
    maximum: Type.Optional(Type.Number()),
    decimals: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 20,
        description: "Digits after the point of a number; as many as it needs by default.",
      }),
    ),
    default: Type.Optional(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
  },
  strict,
);

const Command = Type.Object(
  {
    send: Type.String({
      description: "One line, without its end. {name} is a parameter, {#} the call's number.",
    }),
    params: Type.Optional(Type.Record(Type.String(), Param)),
    answer: Type.Optional(Pattern),
    error: Type.Optional(Pattern),
    more: Type.Optional(Pattern),
    timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 600_000, default: 5_000 })),
    retries: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 20,
        default: 0,
        description:
          "How often it is sent again when no answer comes. Only for commands that may run twice.",
      }),
    ),
  },
  strict,
);

const Event = Type.Object({ line: Pattern, event: Type.String({ minLength: 1 }) }, strict);

export const Mapping = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    encoding: Type.Optional(Type.Union([Type.Literal("utf8"), Type.Literal("latin1")])),
    end: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4,
        default: "\n",
        description:
          "What ends a line that we send. A received one ends with CR, LF, CR LF or LF CR.",
      }),
    ),
    max_line: Type.Optional(Type.Integer({ minimum: 16, maximum: 65_536, default: 1_024 })),
    checksum: Type.Optional(
      Type.Union([Type.Literal("none"), Type.Literal("nmea")], {
        default: "none",
        description:
          "nmea: every line both ways ends with * and two hexadecimal digits, the XOR of all preceding characters (except a leading $). Other lines are dropped.",
      }),
    ),
    echo: Type.Optional(
      Type.Boolean({
        default: false,
        description: "The device repeats each command, also behind a prompt, before it answers.",
      }),
    ),
    quiet_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 10_000,
        default: 100,
        description:
          "Silence awaited after a timeout, so that a late answer is not taken for the next one. What comes sooner than this after the port opened, and before the first command, is taken for the rest of a line and ignored up to its end.",
      }),
    ),
    commands: Type.Record(Type.String({ minLength: 1 }), Command),
    events: Type.Optional(Type.Array(Event)),
    unmatched: Type.Optional(
      Type.String({
        minLength: 1,
        description: "The event, with {line}, for lines that nothing else matches.",
      }),
    ),
  },
  { ...strict, title: "blindrelay bridge: mapping of a line protocol" },
);

type MappingFile = Static<typeof Mapping>;
type PatternFile = Static<typeof Pattern>;
type ParamFile = Static<typeof Param>;

/** The values in a line, or null if it does not match. */
type Matcher = (line: string, tag: string) => Record<string, unknown> | null;

export interface LineCommand {
  readonly method: string;
  /** The line to send; throws an Error for params that do not fit. */
  line(params: unknown, tag: string): string;
  readonly answer: Matcher;
  readonly error: Matcher | null;
  readonly more: Matcher | null;
  readonly timeoutMs: number;
  readonly retries: number;
}

export interface LineMapping {
  readonly encoding: LineEncoding;
  readonly end: string;
  readonly maxLine: number;
  readonly checksum: "none" | "nmea";
  readonly echo: boolean;
  readonly quietMs: number;
  readonly commands: readonly LineCommand[];
  readonly events: readonly { readonly match: Matcher; readonly event: string }[];
  readonly unmatched: string | null;
}

const TAG = "{#}";
const PLACEHOLDER = /\{(#|[A-Za-z_][A-Za-z0-9_]*)\}/g;
/** They would start another line or steer the device. */
const CONTROL = /\p{Cc}/u;

/**
 * The bytes of a line, or an Error for what the encoding would change: a character cut to its low
 * byte may be a line end.
 */
export const encodeLine = (text: string, encoding: LineMapping["encoding"]): Buffer => {
  const bytes = Buffer.from(text, encoding);
  if (bytes.toString(encoding) === text) return bytes;
  const character = [...text].find((one) => Buffer.from(one, encoding).toString(encoding) !== one);
  throw new Error(`${JSON.stringify(character)} cannot be written in ${encoding}`);
};

/** Puts the place before an Error's message. */
const within = (where: string, work: () => unknown): void => {
  try {
    work();
  } catch (error) {
    throw new Error(`${where}: ${messageOf(error)}`);
  }
};

const makeMatcher = (pattern: PatternFile, where: string): Matcher => {
  if (typeof pattern === "object" && "json" in pattern) {
    const wanted = Object.entries(pattern.json);
    return (line) => {
      let value: unknown;
      try {
        value = parseJson(line);
      } catch {
        // Also a number that would be another one.
        return null;
      }
      if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
      const fields = value as Record<string, unknown>;
      const fits = wanted.every(
        ([key, expected]) =>
          Object.hasOwn(fields, key) && JSON.stringify(fields[key]) === JSON.stringify(expected),
      );
      return fits ? fields : null;
    };
  }
  const source = typeof pattern === "string" ? pattern : pattern.regex;
  const numbers = new Set(typeof pattern === "string" ? [] : (pattern.numbers ?? []));
  const compile = (tag: string): RegExp => new RegExp(source.replaceAll(TAG, tag), "u");
  within(where, () => compile("0"));
  const fixed = source.includes(TAG) ? null : compile("");
  return (line, tag) => {
    const found = (fixed ?? compile(tag)).exec(line);
    if (found === null) return null;
    const said: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(found.groups ?? {})) {
      if (text === undefined) continue;
      const number = Number(text);
      // An invalid number was damaged in transit, and one that would be another must be a text.
      const isNumber = text.trim() !== "" && Number.isFinite(number) && !isChanged(text);
      if (numbers.has(name) && !isNumber) return null;
      said[name] = numbers.has(name) ? number : text;
    }
    return said;
  };
};

/** Without an exponent, which a device may take for something else: G-code's E axis, for one. */
const decimalText = (value: number, decimals: number | undefined): string => {
  const text = decimals === undefined ? String(value) : value.toFixed(decimals);
  const [digits = "", exponent] = text.split("e");
  if (exponent === undefined) return text;
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(digits) ?? [];
  const point = whole.length + Number(exponent);
  if (point > 0) return `${sign}${(whole + fraction).padEnd(point, "0")}`;
  return `${sign}0.${"0".repeat(-point)}${whole}${fraction}`;
};

const paramText = (
  name: string,
  value: unknown,
  param: ParamFile,
  encoding: LineMapping["encoding"],
): string => {
  const type = param.type ?? "string";
  const fits =
    type === "integer"
      ? Number.isSafeInteger(value)
      : typeof value === type && (typeof value !== "number" || Number.isFinite(value));
  if (!fits)
    throw new Error(`parameter "${name}" must be ${type === "integer" ? "an" : "a"} ${type}`);
  if (param.enum !== undefined && !param.enum.includes(value as string | number)) {
    throw new Error(`parameter "${name}" must be one of ${param.enum.join(", ")}`);
  }
  const text = typeof value === "number" ? decimalText(value, param.decimals) : String(value);
  if (typeof value === "number") {
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = param;
    // As it is sent: fewer decimals may round it beyond a bound.
    if (!(Number(text) >= minimum && Number(text) <= maximum)) {
      throw new Error(`parameter "${name}" must be ${minimum} to ${maximum}`);
    }
  }
  if (param.pattern !== undefined && !new RegExp(`^(?:${param.pattern})$`, "u").test(text)) {
    throw new Error(`parameter "${name}" must match ${param.pattern}`);
  }
  if (CONTROL.test(text)) throw new Error(`parameter "${name}" must not hold control characters`);
  within(`parameter "${name}"`, () => encodeLine(text, encoding));
  return text;
};

/** Whether the device takes the line as one: "ON#" with the end "##" would end a byte early. */
const endsOnce = (line: string, end: string): boolean => (line + end).indexOf(end) === line.length;

const makeLine = (
  send: string,
  declared: { readonly [name: string]: ParamFile },
  { encoding, end }: Pick<LineMapping, "encoding" | "end">,
  where: string,
): LineCommand["line"] => {
  within(`${where}/send`, () => encodeLine(send, encoding));
  for (const [, name = ""] of send.matchAll(PLACEHOLDER)) {
    if (name !== "#" && !Object.hasOwn(declared, name)) {
      throw new Error(`${where}: {${name}} is not declared in params`);
    }
  }
  // No line has half of a surrogate pair, so that a placeholder is no part of an end.
  if (CONTROL.test(send) || !endsOnce(send.replace(PLACEHOLDER, "\ud800"), end)) {
    throw new Error(`${where}: send must be one line without its end`);
  }
  return (params, tag) => {
    const given = (params ?? {}) as Record<string, unknown>;
    if (typeof given !== "object" || Array.isArray(given))
      throw new Error("params must be an object");
    for (const name of Object.keys(given)) {
      if (!Object.hasOwn(declared, name)) throw new Error(`no parameter "${name}"`);
    }
    const texts = new Map<string, string>([["#", tag]]);
    for (const [name, param] of Object.entries(declared)) {
      const value = Object.hasOwn(given, name) ? given[name] : param.default;
      if (value === undefined) throw new Error(`parameter "${name}" is missing`);
      texts.set(name, paramText(name, value, param, encoding));
    }
    const line = send.replace(PLACEHOLDER, (_all, name: string) => texts.get(name) as string);
    if (endsOnce(line, end)) return line;
    throw new Error(`the line must not hold ${JSON.stringify(end)}, which ends it`);
  };
};

/** Reads a mapping. Throws an Error that names the place of the problem. */
export const readMapping = (value: unknown): LineMapping => {
  if (!Check(Mapping, value)) {
    const [, [first]] = Errors(Mapping, value);
    throw new Error(`${first?.instancePath || "the file"} ${first?.message ?? "is not a mapping"}`);
  }
  const file = value as MappingFile;
  const { encoding = "utf8", end = "\n" } = file;
  within("/end", () => encodeLine(end, encoding));
  return {
    encoding,
    end,
    maxLine: file.max_line ?? 1_024,
    checksum: file.checksum ?? "none",
    echo: file.echo ?? false,
    quietMs: file.quiet_ms ?? 100,
    unmatched: file.unmatched ?? null,
    commands: Object.entries(file.commands).map(([method, command]) => {
      const where = `/commands/${method}`;
      return {
        method,
        line: makeLine(command.send, command.params ?? {}, { encoding, end }, where),
        answer: makeMatcher(command.answer ?? "^ok\\b", `${where}/answer`),
        error: command.error === undefined ? null : makeMatcher(command.error, `${where}/error`),
        more: command.more === undefined ? null : makeMatcher(command.more, `${where}/more`),
        timeoutMs: command.timeout_ms ?? 5_000,
        retries: command.retries ?? 0,
      };
    }),
    events: (file.events ?? []).map(({ line, event }, index) => ({
      match: makeMatcher(line, `/events/${index}/line`),
      event,
    })),
  };
};
