/**
 * shell, inspect, doctor, token and completion as a user runs them, with a real relay and agent.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { makeToken } from "@blindrelay/protocol";
import {
  deriveSessionKeys,
  extractPrk,
  jsonBytes,
  sealPacket,
  toBase64url,
} from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD, type Running } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("echo", (params) => params);
  agent.handle("shout", () => { agent.emit("shouted", { loud: true }); return "ok"; });
  agent.handle("fail", () => { throw new Error("stuck"); });
};
`;

const house = new House();
let running: Running;

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  const program = house.write("pump.mjs", PROGRAM);
  running = house.start(["agent", "run", program, "--agent", "pump-7", "--json"]);
  await running.json();
});

afterAll(() => house.close());

it("a script runs line by line, and ends at its first failure", async () => {
  const said = 'echo {"a": 1}\n.methods\nshout\n.agents\n';
  const { code, stdout, stderr } = await house.cli(["shell", "pump-7"], {}, said);
  expect([code, stdout.split("\n")]).toEqual([
    0,
    expect.arrayContaining(['{"a":1}', "echo", "shout", '"ok"', "pump-7"]),
  ]);
  expect(stderr).toContain('pump-7 shouted {"loud":true}');
  const failed = await house.cli(["shell", "pump-7"], {}, "fail\necho [1]\n");
  expect([failed.code, failed.stdout]).toEqual([3, ""]);
  const portless = await house.cli(["shell", "pump-7", "--serial"], {}, "AT\r");
  expect([portless.code, portless.stderr]).toEqual([3, expect.stringContaining("--mode raw")]);
  const unknown = await house.cli(["shell", "pump-7"], {}, ".nothing\n");
  expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
});

it.skipIf(!HAS_SOCAT)("an event does not disturb the line being typed", async () => {
  const terminal = house.terminal(["shell", "pump-7"], { TERM: "xterm" });
  await terminal.sees(/pump-7> /);
  terminal.type('echo {"a');
  await terminal.sees(/echo \{"a/);
  expect((await house.cli(["call", "pump-7", "shout"])).code).toBe(0);
  await terminal.sees(/pump-7 shouted \{"loud":true\}\r\n.*pump-7> echo \{"a/);
  terminal.type('": 5}\r');
  await terminal.sees(/a.*5/);
  terminal.type("\u0004");
  expect(await terminal.ended()).toBe(0);
});

it("a packet is opened with the keyring's secret, and a changed one is reported", async () => {
  const { keyring } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
  const sid = `${toBase64url(randomBytes(16))}.${toBase64url(randomBytes(16))}`;
  const suite = nodeSuite();
  const prk = extractPrk(suite, "pump-7", keyring["pump-7"].agent_token);
  const keys = deriveSessionKeys(suite, prk, "1", sid);
  const packet = sealPacket(suite, keys.a2c, "1", sid, 1, jsonBytes({ result: "höchst" }));
  const envelope = JSON.stringify({ type: "relay", agent_id: "pump-7", payload: packet });
  const opened = await house.cli(["inspect", "--json"], {}, `${envelope}\n`);
  expect([opened.code, JSON.parse(opened.stdout)]).toEqual([
    0,
    expect.objectContaining({ direction: "agent to client", content: { result: "höchst" } }),
  ]);
  const broken = house.write("broken.log", 'got {"v":"9","sid":"x","seq":1,"p":"AAAA"}\n');
  const { code, stdout } = await house.cli(["inspect", broken, "--agent", "pump-7", "--json"]);
  expect([code, JSON.parse(stdout)]).toEqual([
    1,
    expect.objectContaining({ line: 1, problem: expect.stringContaining("v must be") }),
  ]);
  const none = await house.cli(["inspect"], {}, "nothing here\n");
  expect([none.code, none.stdout]).toEqual([1, ""]);
  for (const file of [house.folder, house.path("no-such.log")]) {
    const unread = await house.cli(["inspect", file]);
    expect([unread.code, unread.stderr]).toEqual([2, expect.stringContaining("cannot read")]);
  }
});

it("the doctor finds no problem, then one that was caused, with its fix", async () => {
  const well = await house.cli(["doctor", "pump-7", "--json"]);
  const names = JSON.parse(well.stdout).checks.map(({ name }: { name: string }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["profile", "relay", "clock", "account", "link", "agent", "secret"]),
  );
  expect([well.code, JSON.parse(well.stdout).ok]).toEqual([0, true]);
  chmodSync(house.path("config/default.json"), 0o644);
  const ill = await house.cli(["doctor", "pump-7"], {
    BLINDRELAY_AGENT_TOKEN: makeToken("e2e", new Uint8Array(32).fill(3)),
  });
  chmodSync(house.path("config/default.json"), 0o600);
  expect(ill.code).toBe(1);
  expect(ill.stderr).toMatch(/^blindrelay: 2 of \d+ checks are bad$/m);
  expect(ill.stdout).toMatch(/BAD profile.*\n +fix: chmod 600/);
  expect(ill.stdout).toMatch(/BAD secret.*\n +fix: .*provision it again/);
  const away = await house.cli(["doctor", "--json"], { BLINDRELAY_URL: "http://127.0.0.1:1" });
  expect(JSON.parse(away.stdout).checks).toContainEqual(
    expect.objectContaining({ name: "relay", ok: false, fix: expect.stringContaining("running") }),
  );
});

it("the doctor detects a proxy that passes REST but no WebSocket, and does not suspect the secret", async () => {
  const proxy = createServer(async ({ url, headers }, response) => {
    const { authorization = "" } = headers;
    const answer = await fetch(`${house.url}${url}`, { headers: { authorization } });
    response.setHeader("content-type", "application/json").end(await answer.text());
  });
  proxy.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const other = await house.cli(["doctor", "pump-7"], { BLINDRELAY_URL: url });
  expect(other.stdout).toMatch(/BAD account.*account token is for/);
  const { code, stdout } = await house.cli(["doctor", "pump-7"], {
    BLINDRELAY_URL: url,
    BLINDRELAY_ACCOUNT_TOKEN: (await house.cli(["auth", "token"])).stdout,
  });
  proxy.close();
  expect(code).toBe(1);
  expect(stdout).toMatch(/ok {2}account/);
  expect(stdout).toMatch(/BAD link.*\n +fix: a proxy between must pass WebSocket/);
  expect(stdout).toMatch(/ok {2}agent/);
  expect(stdout).not.toContain("secret  ");
});

it("a token is described but never printed", async () => {
  const { keyring } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
  const secret = keyring["pump-7"].agent_token as string;
  const right = await house.cli(["token"], {}, `${secret}\n`);
  expect([right.code, right.stdout]).toEqual([0, expect.stringContaining("end-to-end secret")]);
  const wrong = await house.cli(["token", "--json"], {}, secret.slice(0, -1));
  expect([wrong.code, JSON.parse(wrong.stdout).valid]).toEqual([1, false]);
  expect(JSON.stringify([right, wrong])).not.toContain(secret.slice(5, 20));
});

it("agents of the keyring are completed without asking the relay", async () => {
  const env = { BLINDRELAY_URL: "http://127.0.0.1:1" };
  expect(await house.cli(["completion", "offers", "--", "call", ""], env)).toEqual({
    code: 0,
    stdout: "pump-7\n",
    stderr: "",
  });
});
