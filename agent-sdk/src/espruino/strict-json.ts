/**
 * Strict JSON (RFC 8259), because Espruino's own parser is too lenient: it accepts texts that
 * continue after their value, trailing commas, single quotes and hexadecimal numbers, keeps the
 * first of two members with the same name, drops `constructor`, and lets `__proto__` set the
 * prototype. natives.ts uses this only for texts that Espruino would not have written itself, or
 * that contain a number that is not an integer.
 *
 * [portable]
 */
import { readNumber } from "./numbers.ts";

/** The most that a board's stack can hold; nothing on the wire is nested as deep. */
const MAX_DEPTH = 16;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

type Members = { [key: string]: unknown };

/** An object or array that has begun, and the name of the next member. */
interface Open {
  readonly into: Members | unknown[];
  key: string;
}

class JsonReader {
  declare text: string;
  place = 0;

  constructor(text: string) {
    this.text = text;
  }

  fail(): never {
    throw new Error("not JSON");
  }

  /** Code of the current character; NaN at the end. */
  code(): number {
    return this.text.charCodeAt(this.place);
  }

  blanks(): void {
    let code = this.code();
    while (code === 32 || code === 10 || code === 13 || code === 9) {
      this.place++;
      code = this.code();
    }
  }

  /** Whether this character is next, after whitespace; if so, it is skipped. */
  took(char: string): boolean {
    this.blanks();
    if (this.text.charAt(this.place) !== char) return false;
    this.place++;
    return true;
  }

  /**
   * A complete value. Not recursive: Espruino never frees an object with eight active method calls,
   * so each such text would cost the board this reader and its class.
   */
  value(): unknown {
    const open: Open[] = [];
    while (true) {
      let value: unknown;
      let ended = true;
      if (this.took("{")) {
        value = {};
        ended = this.took("}");
        if (!ended) open.push({ into: value as Members, key: this.key() });
      } else if (this.took("[")) {
        value = [];
        ended = this.took("]");
        if (!ended) open.push({ into: value as unknown[], key: "" });
      } else {
        value = this.plain();
      }
      if (open.length > MAX_DEPTH) this.fail();
      // What has ended is put into what is open around it, which may end with it.
      while (ended) {
        const around = open.pop();
        if (around === undefined) return value;
        this.put(around, value);
        ended = !this.took(",");
        if (ended) {
          if (!this.took(Array.isArray(around.into) ? "]" : "}")) this.fail();
          value = around.into;
        } else {
          if (!Array.isArray(around.into)) around.key = this.key();
          open.push(around);
        }
      }
    }
  }

  /**
   * `__proto__` is omitted, because it cannot be an own member there; the last of two members
   * counts.
   */
  put(around: Open, value: unknown): void {
    if (Array.isArray(around.into)) around.into.push(value);
    else if (around.key !== "__proto__") around.into[around.key] = value;
  }

  /** Reads the name of a member, and its colon. */
  key(): string {
    this.blanks();
    if (this.code() !== 34) this.fail();
    const key = this.string();
    if (!this.took(":")) this.fail();
    return key;
  }

  /** A value without members. */
  plain(): unknown {
    const char = this.text.charAt(this.place);
    if (char === '"') return this.string();
    if (char === "t") return this.word("true", true);
    if (char === "f") return this.word("false", false);
    if (char === "n") return this.word("null", null);
    return this.number();
  }

  word(word: string, value: unknown): unknown {
    if (this.text.substring(this.place, this.place + word.length) !== word) this.fail();
    this.place += word.length;
    return value;
  }

  digits(): void {
    if (!isDigit(this.code())) this.fail();
    while (isDigit(this.code())) this.place++;
  }

  number(): number {
    const from = this.place;
    if (this.code() === 45) this.place++;
    if (this.code() === 48) this.place++;
    else this.digits();
    if (this.code() === 46) {
      this.place++;
      this.digits();
    }
    if (this.code() === 69 || this.code() === 101) {
      this.place++;
      if (this.code() === 43 || this.code() === 45) this.place++;
      this.digits();
    }
    const text = this.text.substring(from, this.place);
    return this.place - from < 16 && !/[.eE]/.test(text) ? parseInt(text, 10) : readNumber(text);
  }

  string(): string {
    const from = this.place;
    this.place++;
    while (this.code() !== 34) {
      const code = this.code();
      if (!(code >= 32)) this.fail(); // control characters, and NaN at the end
      this.place += code === 92 ? this.escapeLength() : 1;
    }
    this.place++;
    return JSON.parse(this.text.substring(from, this.place)) as string;
  }

  /** Length of the current escape, 2 or 6 characters. */
  escapeLength(): number {
    const rest = this.text.substring(this.place + 1, this.place + 6);
    if (/^u[\da-fA-F][\da-fA-F][\da-fA-F][\da-fA-F]/.test(rest)) return 6;
    if ('"\\/bfnrt'.indexOf(rest.charAt(0)) < 0) this.fail();
    return 2;
  }
}

/** The value of a JSON text; throws an Error if it is not JSON. */
export const parseStrictly = (text: string): unknown => {
  const reader = new JsonReader(text);
  const value = reader.value();
  reader.blanks();
  if (reader.place !== text.length) reader.fail();
  return value;
};
