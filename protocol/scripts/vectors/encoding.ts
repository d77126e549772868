/** base64url, JSON in UTF-8, and tokens. */
import { filler, token, toHex, withChecksum } from "./reference.ts";

const text = (value: string): string => toHex(Buffer.from(value));
const encoded = (comment: string, bytes: string) => ({
  comment,
  text: Buffer.from(bytes, "hex").toString("base64url"),
  bytes,
});

export const base64urlFile = {
  comment: "base64url without padding, one text for each byte string",
  source: "https://www.rfc-editor.org/rfc/rfc4648#section-10",
  valid: [
    ...["", "f", "fo", "foo", "foob", "fooba", "foobar"].map((plain) =>
      encoded(`RFC 4648 section 10: "${plain}", without its padding`, text(plain)),
    ),
    encoded("both characters that differ from base64", "fbff"),
    encoded("16 bytes, as in a sid", "101112131415161718191a1b1c1d1e1f"),
    encoded("all 64 characters", "00108310518720928b30d38f41149351559761969b71d79f8218a39259a7a29aabb2dbafc31cb3d35db7e39ebbf3dfbf"),
  ],
  invalid: [
    { comment: "one character", text: "A" },
    { comment: "five characters", text: "AAAAA" },
    { comment: "padded with two", text: "Zg==" },
    { comment: "padded with one of two", text: "Zg=" },
    { comment: "padded with one", text: "Zm8=" },
    { comment: "padding alone", text: "====" },
    { comment: "not canonical: 4 low bits are not zero", text: "Zh" },
    { comment: "not canonical: 2 low bits are not zero", text: "Zm9" },
    { comment: "the alphabet of base64", text: "-_8A".replace("-", "+").replace("_", "/") },
    { comment: "a space within", text: "Zm9v Yg" },
    { comment: "a line end after", text: "Zm9v\n" },
    { comment: "a zero character", text: "Zm9\u0000" },
    { comment: "a character above ASCII", text: "Zm9\u00e9" },
    { comment: "a character above 8 bits, whose low byte is in the alphabet", text: "Zm9\u0141" },
  ],
};

export const jsonFile = {
  comment:
    "Plaintexts: valid ones are read from UTF-8 and written again as ASCII JSON; invalid ones are refused",
  source: "https://www.rfc-editor.org/rfc/rfc3629#section-4",
  valid: [
    { comment: "ASCII", bytes: text('{"a":[1,true,null,"x"]}'), json: '{"a":[1,true,null,"x"]}' },
    { comment: "two bytes", bytes: text('"\u00e4"'), json: '"\\u00e4"' },
    { comment: "three bytes", bytes: text('"\u20ac"'), json: '"\\u20ac"' },
    { comment: "four bytes", bytes: text('"\u{1f600}"'), json: '"\\ud83d\\ude00"' },
    { comment: "the first of each length", bytes: text('"\u0080\u0800\u{10000}"'), json: '"\\u0080\\u0800\\ud800\\udc00"' },
    { comment: "the last of each length", bytes: text('"\u07ff\uffff\u{10ffff}"'), json: '"\\u07ff\\uffff\\udbff\\udfff"' },
    { comment: "an escape stays what it says", bytes: text('"\\u00e4\\n\\""'), json: '"\\u00e4\\n\\""' },
    { comment: "a character after an escaped backslash", bytes: text('"\\\\\u00e4"'), json: '"\\\\\\u00e4"' },
    { comment: "DEL is escaped too", bytes: text('"\u007f"'), json: '"\\u007f"' },
  ],
  invalid: [
    { comment: "nothing", bytes: "" },
    { comment: "not JSON", bytes: text("hello") },
    { comment: "overlong zero", bytes: "22c08022" },
    { comment: "overlong slash of three bytes", bytes: "22e080af22" },
    { comment: "overlong of four bytes", bytes: "22f080808022" },
    { comment: "a surrogate", bytes: "22eda08022" },
    { comment: "above U+10FFFF", bytes: "22f490808022" },
    { comment: "five bytes", bytes: "22f88880808022" },
    { comment: "a continuation alone", bytes: "228022" },
    { comment: "Latin-1", bytes: "22e922" },
    { comment: "cut in the middle", bytes: "22e282" },
    { comment: "a byte order mark", bytes: "efbbbf7b7d" },
    { comment: "a backslash before a character that is no escape", bytes: text('"\\\u00e4"') },
    { comment: "a no-break space between tokens", bytes: text("[1,\u00a02]") },
  ],
};

const PREFIXES = { account: "acct_", agent: "agt_", session: "sess_", login: "login_", e2e: "e2e_", push: "push_" };
type Kind = keyof typeof PREFIXES;

const PATTERNS: [string, Uint8Array][] = [
  ["counting bytes", Uint8Array.from({ length: 32 }, (_, i) => i)],
  ["zeros", new Uint8Array(32)],
  ["the largest number", new Uint8Array(32).fill(255)],
  ["any bytes", filler("token", 32)],
];

const GOOD = token("acct_", filler("token", 32));

const refusal = (comment: string, kind: Kind | null, reason: string, text: string) => ({
  comment,
  token: text,
  kind,
  reason,
});

/** The same text with a different character at one place. */
const changed = (text: string, at: number, char: string): string => {
  const index = at < 0 ? text.length + at : at;
  return text.slice(0, index) + (text[index] === char ? "0" : char) + text.slice(index + 1);
};

const OVER = `acct_${"z".repeat(43)}`;

export const tokensFile = {
  comment:
    "prefix || base62(32 bytes) in 43 digits || base62(CRC-32 of what stands before) in 6 digits. reason: form (prefix, length, digits, number too big) or checksum",
  source: "protocol/README.md, section 1",
  valid: (Object.keys(PREFIXES) as Kind[]).flatMap((kind) =>
    PATTERNS.map(([what, bytes]) => ({
      comment: `${kind}, ${what}`,
      kind,
      bytes: toHex(bytes),
      token: token(PREFIXES[kind], bytes),
    })),
  ),
  invalid: [
    refusal("last digit of the checksum", "account", "checksum", changed(GOOD, -1, "A")),
    refusal("first digit of the checksum", "account", "checksum", changed(GOOD, -6, "1")),
    refusal("a digit of the body", "account", "checksum", changed(GOOD, 20, "Q")),
    refusal("another kind's prefix", "agent", "checksum", GOOD.replace("acct_", "agt_")),
    refusal("one character short", "account", "form", GOOD.slice(0, -1)),
    refusal("one character long", "account", "form", `${GOOD}0`),
    refusal("a line end after it", "account", "form", `${GOOD}\n`),
    refusal("a space before it", null, "form", ` ${GOOD}`),
    refusal("prefix alone", "account", "form", "acct_"),
    refusal("prefix in upper case", null, "form", GOOD.replace("acct_", "ACCT_")),
    refusal("prefix without its underline", null, "form", GOOD.replace("acct_", "acct")),
    refusal("a body of 2^256 and more, checksum right", "account", "form", withChecksum(OVER)),
    refusal("a character that is no digit", "account", "form", changed(GOOD, 20, "-")),
    refusal("a character above ASCII", "account", "form", changed(GOOD, 20, "\u0130")),
    refusal("a checksum that is no number", "account", "checksum", changed(GOOD, -1, "_")),
    refusal("nothing", null, "form", ""),
    refusal("a foreign secret", null, "form", "correct horse battery staple, and more of it"),
  ],
};
