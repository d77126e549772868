/**
 * JSON (RFC 8259), strictly, where Espruino's own parser cannot be believed: that one takes texts
 * that go on after their value, trailing commas, single quotes and hexadecimal numbers, keeps the
 * first of two members of one name, drops `constructor`, and lets `__proto__` set the prototype.
 * Natives.ts asks here only for texts that Espruino would not have written itself.
 *
 * [portable]
 */

/** A board's stack holds no more, and nothing on the wire nests so deep. */
const MAX_DEPTH = 16;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

class JsonReader {
  declare text: string;
  place = 0;

  constructor(text: string) {
    this.text = text;
  }

  fail(): never {
    throw new Error("not JSON");
  }

  /** Code of the character here; NaN at the end. */
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

  /** Whether this character came next, after blanks; it is passed then. */
  took(char: string): boolean {
    this.blanks();
    if (this.text.charAt(this.place) !== char) return false;
    this.place++;
    return true;
  }

  value(depth: number): unknown {
    if (depth > MAX_DEPTH) this.fail();
    if (this.took("{")) return this.object(depth);
    if (this.took("[")) return this.array(depth);
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
    return Number(this.text.substring(from, this.place));
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

  /** Characters of the escape here, 2 or 6. */
  escapeLength(): number {
    const kind = this.text.charAt(this.place + 1);
    if (kind === "u") {
      for (let i = 2; i < 6; i++) {
        const digit = this.text.charAt(this.place + i).toLowerCase();
        if (digit === "" || "0123456789abcdef".indexOf(digit) < 0) this.fail();
      }
      return 6;
    }
    if (kind === "" || '"\\/bfnrt'.indexOf(kind) < 0) this.fail();
    return 2;
  }

  array(depth: number): unknown[] {
    const values: unknown[] = [];
    if (this.took("]")) return values;
    let more = true;
    while (more) {
      values.push(this.value(depth + 1));
      more = this.took(",");
    }
    if (!this.took("]")) this.fail();
    return values;
  }

  /** The last of two members counts; `__proto__` is left out, as it cannot be an own member there. */
  object(depth: number): object {
    const members: { [key: string]: unknown } = {};
    if (this.took("}")) return members;
    let more = true;
    while (more) {
      this.blanks();
      if (this.code() !== 34) this.fail();
      const key = this.string();
      if (!this.took(":")) this.fail();
      const value = this.value(depth + 1);
      if (key !== "__proto__") members[key] = value;
      more = this.took(",");
    }
    if (!this.took("}")) this.fail();
    return members;
  }
}

/** The value of a JSON text; throws an Error where it is none. */
export const parseStrictly = (text: string): unknown => {
  const reader = new JsonReader(text);
  const value = reader.value(0);
  reader.blanks();
  if (reader.place !== text.length) reader.fail();
  return value;
};
