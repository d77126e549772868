/** The first login of a user on a relay that requires two factors, which is the default. */
import { createHmac } from "node:crypto";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Environment, House, PASSWORD, RELAY } from "./processes.ts";
import type { Terminal } from "./terminal.ts";

const STEP_MS = 30_000;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

const fromBase32 = (text: string): Buffer => {
  const bits = Array.from(text, (letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, "0"));
  const bytes = bits.join("").match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
};

/** The code of an authenticator app (RFC 6238 over RFC 4226). */
const codeOf = (secret: string, timeMs: number): string => {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(timeMs / STEP_MS)));
  const mac = createHmac("sha1", fromBase32(secret)).update(counter).digest();
  const at = (mac[19] as number) & 15;
  return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
};

describe.skipIf(!HAS_SOCAT)("a first login if two factors are required", () => {
  const house = new House();
  beforeAll(() => house.openForTwoFactors("grace"));
  afterAll(() => house.close());

  const login = ["login", "--username", "grace"];
  const where = (): Environment => ({ BLINDRELAY_URL: house.url });

  it("cannot be done by a script, which gets an error", async () => {
    const { code, stderr } = await house.cli([...login, "--password-stdin"], where(), PASSWORD);
    expect([code, stderr]).toEqual([2, expect.stringContaining("do it on a terminal")]);
  });

  /** Up to the first code; returns the new secret. */
  const begin = async (terminal: Terminal): Promise<string> => {
    await terminal.sees(/Password: /);
    terminal.type(`${PASSWORD}\r`);
    await terminal.sees(/One-time code.*: /);
    terminal.type("\r");
    await terminal.sees(/The code it shows: /);
    const [, secret = ""] = /^ {2}([A-Z2-7]{32})\r?$/m.exec(terminal.said.text) ?? [];
    return secret;
  };

  it("that is interrupted says how far it came, and can be repeated", async () => {
    await house.addUser("hopper");
    const again = ["login", "--username", "hopper"];
    const first = house.terminal(again, { ...where(), TERM: "xterm" });
    await begin(first);
    first.type("\x03");
    await first.sees(/interrupted; you are not enrolled: remove the entry/);
    expect(await first.ended()).toBe(130);
    expect(first.said.text).toContain("\x1b[97;40m█"); // the QR code
    const second = house.terminal(again, where());
    const secret = await begin(second);
    const now = Date.now();
    second.type(`${codeOf(secret, now)}\r`);
    await second.sees(/The next code it shows.*: /);
    second.type("000000\r");
    await second.sees(/The next code it shows.*: /);
    second.type("\x03");
    await second.sees(/interrupted; you are enrolled, and not logged in/);
    expect(await second.ended()).toBe(130);
    expect(second.said.text).not.toContain("█");
    const third = house.terminal(again, where());
    await third.sees(/Password: /);
    third.type(`${PASSWORD}\r`);
    await third.sees(/One-time code.*: /);
    third.type(`${codeOf(secret, now + STEP_MS)}\r`);
    await third.sees(/logged in to .* as hopper/);
    expect(await third.ended()).toBe(0);
    await house.cli(["auth", "logout"]);
  });

  it("enrols an authenticator, shows recovery codes once, and ends logged in", async () => {
    const terminal = house.terminal(login, where());
    const secret = await begin(terminal);
    terminal.type("000000\r");
    await terminal.sees(/not a code of the new secret/);
    await terminal.sees(/The code it shows: /);
    const now = Date.now();
    terminal.type(`${codeOf(secret, now)}\r`);
    await terminal.sees(/The next code it shows/);
    expect(terminal.said.text.match(/^ {2}[a-z2-9]{5}-[a-z2-9]{5}\r?$/gm)).toHaveLength(10);
    // The relay accepts a code one step early.
    terminal.type(`${codeOf(secret, now + STEP_MS)}\r`);
    await terminal.sees(/logged in to .* as grace/);
    expect(await terminal.ended()).toBe(0);
    expect((await house.cli(["agent", "list", "--json"])).stdout).toBe('{"items":[]}\n');
  });
});

describe.skipIf(!HAS_SOCAT)("blindrelay-server on a terminal", () => {
  const house = new House();
  afterAll(() => house.close());

  it("asks for the passwords of the first admin and of others, and shows a QR code", async () => {
    const folder = ["--data", house.path("relay")];
    const init = house.terminal(["init", "--username", "ada", ...folder], { TERM: "xterm" }, RELAY);
    const user = async (terminal: Terminal): Promise<void> => {
      await terminal.sees(/Password: /);
      terminal.type(`${PASSWORD}\r`);
      await terminal.sees(/Once more: /);
      terminal.type(`${PASSWORD}\r`);
      expect(await terminal.ended()).toBe(0);
      expect(terminal.said.text).not.toContain(PASSWORD);
      expect(terminal.said.text).toContain("the terminal is as before");
    };
    await user(init);
    expect(init.said.text).toContain("and the admin ada");
    expect(init.said.text).toContain("\x1b[97;40m█");
    await user(house.terminal(["user", "add", "grace", ...folder], {}, RELAY));
    await user(house.terminal(["user", "reset-password", "grace", ...folder], {}, RELAY));
    const refused = house.terminal(["user", "add", "hopper", ...folder], {}, RELAY);
    await refused.sees(/Password: /);
    refused.type("\x03");
    expect(await refused.ended()).toBe(130);
    expect(refused.said.text).toContain("the terminal is as before");
  });
});
