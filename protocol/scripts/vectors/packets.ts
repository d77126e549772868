/** Valid packet texts, and what is refused before any cryptography. */
import { filler, base64url, toHex } from "./reference.ts";

const C = "EBESExQVFhcYGRobHB0eHw";
const A = "ds-48QSvnxYm4eEeDWcCBg";
const SID = `${C}.${A}`;
const TAG_ONLY = base64url(filler("packet tag", 16));
const LONGER = base64url(filler("packet", 40));

const good = (comment: string, text: string, v: string, sid: string, seq: number, p: string) => ({
  comment,
  text,
  v,
  sid,
  seq,
  sealed: toHex(Buffer.from(p, "base64url")),
});

/** A data packet with seq 1 and a handwritten text. */
const data = (comment: string, text: string) => good(comment, text, "1", SID, 1, LONGER);

const plain = (comment: string, v: string, sid: string, seq: number, p: string) =>
  good(comment, JSON.stringify({ v, sid, seq, p }), v, sid, seq, p);

const refused = (comment: string, text: string, refused_by = "any") => ({
  comment,
  text,
  refused_by,
});

/** A data packet's text with some fields' JSON replaced; null omits the field. */
const fields = (changes: { v?: string | null; sid?: string | null; seq?: string | null; p?: string | null }) => {
  const all = { v: '"1"', sid: `"${SID}"`, seq: "1", p: `"${LONGER}"`, ...changes };
  const parts = Object.entries(all).filter(([, value]) => value !== null);
  return `{${parts.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
};

const GOOD_TEXT = fields({});
const HEAD = `"v":"1","sid":"${SID}"`;
const TAIL = `"p":"${LONGER}"`;

export const packetsFile = {
  comment:
    "valid: any reader accepts the form (nothing is verified). invalid: refused before any cryptography, by any reader or by the one in that role",
  source: "protocol/README.md, section 2",
  valid: [
    plain("an opening", "1", C, 0, TAG_ONLY),
    plain("an opening of suite 2", "2", C, 0, TAG_ONLY),
    plain("an answer", "1", SID, 0, TAG_ONLY),
    plain("data", "1", SID, 1, LONGER),
    plain("data with an empty plaintext", "1", SID, 1, TAG_ONLY),
    ...[31, 32, 33, 65535, 65536, 2147483647, 2147483648, 4294967295].map((seq) =>
      plain(`seq ${seq}`, "1", SID, seq, LONGER),
    ),
    plain("any low bits in the last character of C", "1", `${C.slice(0, -1)}x.${A}`, 1, LONGER),
    plain("any low bits in the last character of A", "1", `${SID.slice(0, -1)}h`, 1, LONGER),
    data("another field order", `{${TAIL},"seq":1,"sid":"${SID}","v":"1"}`),
    data("blanks", ` {\t"v" : "1",\r\n"sid":"${SID}" ,"seq" :\t1 , ${TAIL} }\n`),
    data("seq last", `{${HEAD},${TAIL},"seq":1}`),
    data("a blank after seq", `{${HEAD},"seq":1\n,${TAIL}}`),
    data("unknown fields", `{${HEAD},"seq":1,${TAIL},"x":[1.0,{"y":null}]}`),
    data("seq in a nested object", `{"x":{"seq":2.0},${HEAD},"seq":1,${TAIL}}`),
    data("seq in a nested array, after", `{${HEAD},"seq":1,${TAIL},"x":[{"seq":2}]}`),
    data("seq as a value", `{"x":"seq",${HEAD},"seq":1,${TAIL},"y":"seq"}`),
    data("seq inside a string", `{"x":"\\"seq\\":2.0","y":"\\\\",${HEAD},"seq":1,${TAIL}}`),
    data("brackets inside a string", `{"x":"{[",${HEAD},"seq":1,${TAIL}}`),
    data("an escaped key", `{${HEAD},"\\u0073eq":1,${TAIL}}`),
    data("an escaped value", `{"v":"\\u0031","sid":"${SID}","seq":1,${TAIL}}`),
    data("of duplicate keys the last counts", `{${HEAD},"seq":7,"seq":1,${TAIL}}`),
    data("a duplicate of another type before", `{${HEAD},"seq":[1,2],"seq":1,${TAIL}}`),
    data("a type that is no string", `{"type":1,${HEAD},"seq":1,${TAIL}}`),
    data("__proto__ is a field like any other", `{"__proto__":{"seq":9},${HEAD},"seq":1,${TAIL}}`),
  ],
  invalid: [
    refused("nothing", ""),
    refused("null", "null"),
    refused("a number", "1"),
    refused("a string", '"x"'),
    refused("an array", `[${GOOD_TEXT}]`),
    refused("an empty object", "{}"),
    refused("cut", GOOD_TEXT.slice(0, -1)),
    refused("something after it", `${GOOD_TEXT}x`),
    refused("a trailing comma", GOOD_TEXT.replace("}", ",}")),
    refused("single quotes", GOOD_TEXT.replaceAll('"', "'")),
    refused("a byte order mark", `\ufeff${GOOD_TEXT}`),
    refused("a string type", `{"type":"relay",${HEAD},"seq":1,${TAIL}}`),
    refused("an empty string type", `{"type":"",${HEAD},"seq":1,${TAIL}}`),
    refused(
      "all fields inherited by __proto__",
      `{"__proto__":${fields({})}}`,
    ),
    refused("seq inherited by __proto__", `{"__proto__":{"seq":1},${HEAD},${TAIL}}`),

    refused("no v", fields({ v: null })),
    refused("v is a number", fields({ v: "1" })),
    refused("v is unknown", fields({ v: '"5"' })),
    refused("v is empty", fields({ v: '""' })),
    refused("v has a blank", fields({ v: '"1 "' })),
    refused("v is a name on Object.prototype", fields({ v: '"toString"' })),

    refused("no sid", fields({ sid: null })),
    refused("sid is a number", fields({ sid: "1" })),
    refused("sid is empty", fields({ sid: '""' })),
    refused("C of 21", fields({ sid: `"${C.slice(1)}.${A}"` })),
    refused("C of 23", fields({ sid: `"x${C}.${A}"` })),
    refused("no C", fields({ sid: `".${A}"` })),
    refused("an empty A", fields({ sid: `"${C}."` })),
    refused("A of 65", fields({ sid: `"${C}.${"x".repeat(65)}"` })),
    refused("two dots", fields({ sid: `"${SID}.x"` })),
    refused("C outside the alphabet", fields({ sid: `"+${C.slice(1)}.${A}"` })),
    refused("A outside the alphabet", fields({ sid: `"${C}./${A.slice(1)}"` })),
    refused("A padded", fields({ sid: `"${C}.${A.slice(0, -1)}="` })),
    refused("a bar in the sid", fields({ sid: `"${C}.${A.slice(0, -1)}|"` })),
    refused("a character above ASCII in the sid", fields({ sid: `"${C}.${A.slice(0, -1)}\\u0141"` })),
    refused("a quote in the sid", fields({ sid: `"${C}.${A.slice(0, -1)}\\""` })),

    refused("no seq", fields({ seq: null })),
    ...[
      "1.0", "1e0", "1E0", "10e-1", "0.1e1", "-0", "-1", "01", "00", "+1", "0x1", "1.5", "1e400",
      "4294967296", "4294967297", "9007199254740993", "18446744073709551617", '"1"', "true", "null", "[1]",
      '{"seq":1}', "NaN", "Infinity", "1 2", "",
    ].map((literal) => refused(`seq ${literal || "empty"}`, fields({ seq: literal }))),
    refused("the last of duplicate seq is 1.0", `{${HEAD},"seq":1,"seq":1.0,${TAIL}}`),
    refused("the last of duplicate seq, escaped, is 1.0", `{${HEAD},"seq":1,"\\u0073eq":1.0,${TAIL}}`),
    refused(
      "seq 1.0 hidden behind an array and before a nested 1",
      `{"seq":[1,2],"seq":1.0,"x":{"seq":1},${HEAD},${TAIL}}`,
    ),
    refused("a nested 1 after seq 1.0", `{${HEAD},"seq":1.0,"x":{"seq":1},${TAIL}}`),
    refused("seq 1.0 and 1 inside a string", `{${HEAD},"seq":1.0,"x":"\\"seq\\":1",${TAIL}}`),
    refused("Seq", `{${HEAD},"Seq":1,${TAIL}}`),

    refused("a bare C with seq 1", fields({ sid: `"${C}"` })),
    refused("a bare C with seq 1 and tag alone", fields({ sid: `"${C}"`, p: `"${TAG_ONLY}"` })),
    refused("an opening with a plaintext", fields({ sid: `"${C}"`, seq: "0" })),
    refused("an answer with a plaintext", fields({ seq: "0" })),

    refused("no p", fields({ p: null })),
    refused("p is a number", fields({ p: "1" })),
    refused("p is empty", fields({ p: '""' })),
    refused("p of 15 bytes", fields({ p: `"${base64url(filler("short", 15))}"` })),
    refused("p of 21 characters", fields({ p: `"${TAG_ONLY.slice(1)}"` })),
    refused("p of 25 characters, which no bytes have", fields({ p: `"${TAG_ONLY}AAA"` })),
    refused("p padded", fields({ p: `"${TAG_ONLY}=="` })),
    refused("p padded with one", fields({ p: `"${base64url(filler("packet", 41))}="` })),
    refused("p not canonical", fields({ p: `"${"A".repeat(21)}B"` })),
    refused("p not canonical in 2 bits", fields({ p: `"${"A".repeat(22)}B"` })),
    refused("p in the alphabet of base64", fields({ p: `"+/${TAG_ONLY.slice(2)}"` })),
    refused("p with a blank", fields({ p: `" ${TAG_ONLY}"` })),
    refused("p with a line end", fields({ p: `"${TAG_ONLY}\\n"` })),
    refused("p with a character above ASCII", fields({ p: `"\\u0141${TAG_ONLY.slice(1)}"` })),
    refused("an opening's p padded", fields({ sid: `"${C}"`, seq: "0", p: `"${TAG_ONLY}=="` })),
    refused("an opening's p not canonical", fields({ sid: `"${C}"`, seq: "0", p: `"${"A".repeat(21)}B"` })),

    refused("an agent never gets seq 0 on C.A", fields({ seq: "0", p: `"${TAG_ONLY}"` }), "agent"),
    refused("an agent's own part has 22 characters, not 21", fields({ sid: `"${SID.slice(0, -1)}"` }), "agent"),
    refused("an agent's own part has 22 characters, not 23", fields({ sid: `"${SID}x"` }), "agent"),
    refused("an agent's own part has 22 characters, not 1", fields({ sid: `"${C}.x"` }), "agent"),
    refused("a client never gets a bare C", fields({ sid: `"${C}"`, seq: "0", p: `"${TAG_ONLY}"` }), "client"),
  ],
};
