/**
 * JSON.parse as Espruino has it (docs/runtimes.md): it stops at the end of the first value whatever
 * follows, takes single quotes, hexadecimal numbers and trailing commas, drops a member named
 * `constructor`, lets `__proto__` set the prototype, and keeps the first of two members of one name.
 */

/** Node's own, for the inside of strings; a test may put this file in its place. */
const parse = JSON.parse;

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
    return Number(number);
  }

  /** The next character that is no blank. */
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
    return parse(`"${inside}"`) as string;
  }
}

/** Throws a SyntaxError for what even Espruino refuses. */
export const parseLeniently = (text: string): unknown => new Reader(text).value();
