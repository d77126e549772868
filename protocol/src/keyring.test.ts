import { describe, expect, it } from "vitest";
import { decodeKeyring, encodeKeyring, type KeyringEntry, MAX_KEYRING_LENGTH } from "./keyring.ts";
import { makeToken } from "./tokens.ts";

const SECRET = makeToken("e2e", new Uint8Array(32).fill(7));
const OTHER = makeToken("e2e", new Uint8Array(32).fill(8));
const DEVICE_KEY = "A".repeat(43);
const URL = "https://relay.example";
const KEY = { agent_token: SECRET, packet_version: "2" } as const;

describe("a keyring as a text", () => {
  it("comes back as it was, on one line, also for an agent named like a member of every object", () => {
    const keys = new Map<string, KeyringEntry>([
      ["pump-7", KEY],
      ["constructor", { agent_token: OTHER, packet_version: "3", device_key: DEVICE_KEY }],
    ]);
    const text = encodeKeyring(URL, keys);
    expect(text).not.toContain("\n");
    expect(decodeKeyring(`\ufeff ${text}\r\n`)).toEqual({ url: URL, keys });
  });

  it("is small enough for a QR code that a phone reads from a screen", () => {
    // Version 15 of a QR code, 77 modules wide, holds 412 bytes at its second level of correction.
    const key = { ...KEY, device_key: DEVICE_KEY };
    const longest = encodeKeyring(`${URL}/${"a".repeat(40)}`, new Map([["p".repeat(64), key]]));
    expect(longest.length).toBeLessThan(412);
  });

  const lines = [
    `BLINDRELAY_URL=${URL}`,
    "BLINDRELAY_AGENT_ID=pump-7",
    `BLINDRELAY_AGENT_TOKEN=${SECRET}`,
    "BLINDRELAY_PACKET_VERSION=2",
  ];
  it.each([
    ["lines", lines.join("\n")],
    ["lines of another system's shell", lines.map((line) => `export ${line}\r\n`).join("")],
    ["JSON", JSON.stringify({ agent_id: "pump-7", relay_url: URL, ...KEY })],
    [
      "a profile",
      JSON.stringify({ url: URL, username: "ada", keyring: { "pump-7": KEY } }, null, 2),
    ],
  ])("is also read from %s", (_what, text) => {
    expect(decodeKeyring(text)).toEqual({ url: URL, keys: new Map([["pump-7", KEY]]) });
  });

  it("leaves what a profile notes for another relay", () => {
    const keyring = { "pump-7": KEY, "pump-8": { ...KEY, relay: "https://other.example" } };
    const text = JSON.stringify({ url: URL, keyring });
    expect(decodeKeyring(text)).toEqual({ url: URL, keys: new Map([["pump-7", KEY]]) });
  });

  it("keeps what a profile notes for its own relay, of the first version unless it says so", () => {
    const keyring = { "pump-7": { agent_token: SECRET, relay: URL } };
    const keys = new Map([["pump-7", { agent_token: SECRET, packet_version: "1" }]]);
    expect(decodeKeyring(JSON.stringify({ url: URL, keyring }))).toEqual({ url: URL, keys });
    const elsewhere = JSON.stringify({ url: 7, keyring: { "pump-7": KEY } });
    expect(decodeKeyring(elsewhere).url).toBe(null);
  });

  it("is read from lines with a device key, whatever else is among them", () => {
    const more = [`BLINDRELAY_DEVICE_KEY="${DEVICE_KEY}"`, "NAME='[hall] {7}'"];
    const keys = new Map([["pump-7", { ...KEY, device_key: DEVICE_KEY }]]);
    expect(decodeKeyring([...lines, ...more].join("\n"))).toEqual({ url: URL, keys });
  });

  it("that names no agent is told with no more of the name than an id has", () => {
    const long = JSON.stringify({ keyring: { ["/".repeat(1000)]: KEY } });
    expect(() => decodeKeyring(long)).toThrow(`"${"/".repeat(64)}" is no agent id`);
  });

  const entry = (id: string, key: object) => JSON.stringify({ url: URL, keyring: { [id]: key } });
  it.each([
    ["nothing", "", "no entry of a keyring"],
    ["a picture", "\u0089PNG\r\n", "no entry of a keyring"],
    ["a bare secret, which names no agent", SECRET, "no entry of a keyring"],
    ["broken JSON", '{"keyring": {', "invalid JSON (line 1, column 14)"],
    ["a list", "[]", "no entry of a keyring"],
    ["an empty keyring", '{"keyring": {}}', "no end-to-end secret"],
    ["an encrypted profile", '{"url": "x", "sealed": {}}', "passphrase"],
    ["no secret", lines.filter((line) => !line.includes("TOKEN")).join("\n"), "no end-to-end"],
    ["a mistyped secret", entry("pump-7", { agent_token: SECRET.replace(/.$/, "!") }), "pump-7"],
    [
      "another kind of secret",
      entry("pump-7", { agent_token: makeToken("agent", new Uint8Array(32)) }),
      "agt_",
    ],
    ["no agent's id", entry("../pump", KEY), "is no agent id"],
    ["half a device key", entry("pump-7", { ...KEY, device_key: "AAAA" }), "device key"],
    ["another version", entry("pump-7", { ...KEY, packet_version: "9" }), "packet version"],
    ["a secret that is no text", entry("pump-7", { agent_token: [SECRET] }), "expected an end-to-"],
    ["an agent that is nothing", JSON.stringify({ keyring: { "pump-7": 7 } }), "pump-7: expected"],
    [
      "a device key that is no text",
      entry("a", { ...KEY, device_key: [DEVICE_KEY] }),
      "device key",
    ],
    ["another object", '{"a": 1}', "no entry of a keyring"],
    ["as much as allowed, of nothing", " ".repeat(MAX_KEYRING_LENGTH), "no entry of a keyring"],
    ["far too much", " ".repeat(MAX_KEYRING_LENGTH + 1), "too large"],
  ])("is refused with the reason, without the secret: %s", (_what, text, reason) => {
    let said = "";
    try {
      decodeKeyring(text);
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toContain(reason);
    expect(said).not.toMatch(/[0-9A-Za-z]{40}/);
  });
});
