/**
 * JSON.parse as on Espruino (docs/espruino.md): it stops at the end of the first value whatever
 * follows, accepts single quotes, hexadecimal numbers and trailing commas, drops a member named
 * `constructor`, lets `__proto__` set the prototype, keeps the first of duplicate members, and
 * rounds numbers at every digit. JSON.stringify likewise. Strings have 8 bits per character, as on
 * nearly all boards: a wider character keeps its low byte, and is written as an escape.
 */

/** Node's own, for the contents of strings; a test may install this file in its place. */
const parse = JSON.parse;
const stringify = JSON.stringify;

/** Espruino's number parser: rounds at every digit after the point and ten of the exponent. */
const readNumber = (text: string): number => {
  if (text.startsWith("0x")) return Number(text);
  const [, sign, whole, fraction, exponent] = /^(-?)(\d+)\.?(\d*)(?:[eE](.*))?$/.exec(
    text,
  ) as unknown as string[];
  let value = Number(BigInt.asIntN(64, BigInt(whole as string)));
  let place = 0.1;
  for (const digit of fraction as string) {
    value += place * Number(digit);
    place /= 10;
  }
  const tens = Math.max(-400, Math.min(400, Number(exponent ?? 0)));
  for (let e = tens; e > 0; e--) value *= 10;
  for (let e = tens; e < 0; e++) value /= 10;
  return sign === "-" ? -value : value;
};

/** What an engine without Unicode keeps of a string. */
const eightBit = (text: string): string =>
  text.replace(/[^\0-\xff]/g, (unit) => String.fromCharCode(unit.charCodeAt(0) & 255));

const writeString = (text: string): string =>
  stringify(eightBit(text)).replace(
    /[\x7f-\xff]/g,
    (unit) => `\\u00${unit.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/**
 * Like its JSON.stringify: 11 digits after the point, `undefined` for a function, ` ... ` for a
 * cycle.
 */
export const stringifyLeniently = (value: unknown): string => {
  const above: object[] = [];
  const write = (one: unknown): string => {
    if (typeof one === "function") return "undefined";
    if (typeof one === "number" && Number.isFinite(one) && !Number.isInteger(one))
      return String(Number(one.toPrecision(12)));
    if (typeof one === "string") return writeString(one);
    if (typeof one !== "object" || one === null) return stringify(one) ?? "null";
    if (above.includes(one)) return " ... ";
    const { toJSON } = one as { toJSON?: () => unknown };
    if (toJSON !== undefined) return write(toJSON.call(one));
    above.push(one);
    const text = Array.isArray(one)
      ? `[${Array.from(one, write).join(",")}]`
      : `{${Object.entries(one)
          .filter(([, item]) => item !== undefined && typeof item !== "function")
          .map(([key, item]) => `${writeString(key)}:${write(item)}`)
          .join(",")}}`;
    above.pop();
    return text;
  };
  return write(value);
};

const BLANK = /\s/;
const NUMBER = /^(0x[0-9a-fA-F]+|-?\d+(\.\d*)?([eE][+-]?\d+)?)/;
const WORDS: [string, unknown][] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

class Reader {
  private at = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  value(): unknown {
    const char = this.peek();
    if (char === "{") return this.object();
    if (char === "[") return this.array();
    if (char === '"' || char === "'") return this.string(char);
    const rest = this.text.slice(this.at);
    for (const [word, value] of WORDS) {
      if (!rest.startsWith(word)) continue;
      this.at += word.length;
      return value;
    }
    const number = NUMBER.exec(rest)?.[0];
    if (number === undefined) throw new SyntaxError("JSON");
    this.at += number.length;
    return readNumber(number);
  }

  /** The next character that is not whitespace. */
  private peek(): string {
    while (BLANK.test(this.text.charAt(this.at))) this.at++;
    return this.text.charAt(this.at);
  }

  private take(char: string): boolean {
    if (this.peek() !== char) return false;
    this.at++;
    return true;
  }

  private object(): object {
    const object: Record<string, unknown> = {};
    this.take("{");
    while (!this.take("}")) {
      const quote = this.peek();
      if (quote !== '"' && quote !== "'") throw new SyntaxError("JSON");
      const key = this.string(quote);
      if (!this.take(":")) throw new SyntaxError("JSON");
      const value = this.value();
      if (key === "__proto__") Object.setPrototypeOf(object, value as object | null);
      else if (key !== "constructor" && !Object.hasOwn(object, key)) object[key] = value;
      if (!this.take(",") && this.peek() !== "}") throw new SyntaxError("JSON");
    }
    return object;
  }

  private array(): unknown[] {
    const array: unknown[] = [];
    this.take("[");
    while (!this.take("]")) {
      array.push(this.value());
      if (!this.take(",") && this.peek() !== "]") throw new SyntaxError("JSON");
    }
    return array;
  }

  private string(quote: string): string {
    let end = this.at + 1;
    while (this.text.charAt(end) !== quote) {
      if (end >= this.text.length) throw new SyntaxError("JSON");
      end += this.text.charAt(end) === "\\" ? 2 : 1;
    }
    const raw = this.text.slice(this.at + 1, end);
    this.at = end + 1;
    const inside = quote === '"' ? raw : raw.replace(/\\'/g, "'").replace(/(?<!\\)"/g, '\\"');
    return eightBit(parse(`"${inside}"`) as string);
  }
}

/** Throws a SyntaxError for input that even Espruino refuses. */
export const parseLeniently = (text: string): unknown => new Reader(text).value();
