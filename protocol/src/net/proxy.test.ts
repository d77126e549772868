/** Which proxy stands on the way to an address, by the environment. */
import { globalAgent, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { describe, expect, it } from "vitest";
import { agentFor, proxyFor } from "./proxy.ts";

const PROXY = "http://proxy.example:3128";
const nameFor = (url: string, environment: Record<string, string>, setting?: string | null) =>
  proxyFor(new URL(url), setting, environment)?.name ?? null;

it.each([
  ["https://relay.example", { HTTPS_PROXY: PROXY }, "proxy.example:3128"],
  ["wss://relay.example/wss", { https_proxy: PROXY }, "proxy.example:3128"],
  ["http://relay.example", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["ws://relay.example/wss", { http_proxy: PROXY }, "proxy.example:3128"],
  ["https://relay.example", { HTTP_PROXY: PROXY }, null],
  ["http://relay.example", { HTTPS_PROXY: PROXY }, null],
  ["wss://relay.example/wss", { ALL_PROXY: PROXY }, "proxy.example:3128"],
  ["ws://relay.example/wss", { all_proxy: "proxy.example" }, "proxy.example:80"],
  ["https://relay.example", { HTTPS_PROXY: "https://proxy.example" }, "proxy.example:443"],
  ["https://relay.example", { HTTPS_PROXY: " " }, null],
  ["https://relay.example", { HTTPS_PROXY: "http://a:1", https_proxy: "http://b:2" }, "b:2"],
  ["https://relay.example", { HTTPS_PROXY: "http://a:1", ALL_PROXY: "http://b:2" }, "a:1"],
  // In a CGI program HTTP_PROXY is the caller's header `Proxy`.
  ["http://relay.example", { HTTP_PROXY: PROXY, REQUEST_METHOD: "GET" }, null],
  ["https://relay.example", { HTTPS_PROXY: PROXY, REQUEST_METHOD: "GET" }, "proxy.example:3128"],
  ["http://relay.example", { http_proxy: PROXY, REQUEST_METHOD: "GET" }, "proxy.example:3128"],
  ["http://127.0.0.1:8080", { HTTP_PROXY: PROXY }, null],
  ["http://127.10.20.30", { HTTP_PROXY: PROXY }, null],
  ["http://128.0.0.1", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["http://127.0.0.1.example", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["http://1.127.0.0.1.example", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["http://notlocalhost", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["http://localhost.example", { HTTP_PROXY: PROXY }, "proxy.example:3128"],
  ["https://relay.example", { HTTPS_PROXY: "http://[fd00::1]:3128" }, "[fd00::1]:3128"],
  ["http://localhost:8080", { HTTP_PROXY: PROXY }, null],
  ["http://relay.localhost", { HTTP_PROXY: PROXY }, null],
  ["ws://[::1]:8080/wss", { HTTP_PROXY: PROXY }, null],
])("%s with %j goes through %s", (url, environment, name) => {
  expect(nameFor(url, environment)).toBe(name);
});

describe("NO_PROXY", () => {
  it.each([
    ["*", true],
    ["relay.example", true],
    ["RELAY.Example", true],
    ["other.example, relay.example", true],
    ["other.example relay.example", true],
    ["example", true],
    [".example", true],
    ["*.example", true],
    ["relay.example:443", true],
    ["relay.example:8443", false],
    ["relay.example:", false],
    ["other.example,, relay.example.", true],
    ["lay.example", false],
    ["relay.example.com", false],
    ["", false],
    [",", false],
    [".", false],
  ])("%j exempts https://relay.example: %s", (list, isExempt) => {
    const environment = { HTTPS_PROXY: PROXY, NO_PROXY: list };
    expect(nameFor("https://relay.example", environment) === null).toBe(isExempt);
    expect(nameFor("wss://relay.example/wss", environment) === null).toBe(isExempt);
  });

  it.each([
    ["https://10.1.2.3", "10.1.2.3", true],
    ["https://10.1.2.3", "10.0.0.0/8", true],
    ["https://10.1.2.3", "11.0.0.0/8,1.2.3", false],
    ["https://10.1.2.3", "10.0.0.0/99", false],
    ["https://10.1.2.3", "11.0.0.0/", false],
    ["https://10.1.2.3", "11.0.0.0/1e0", false],
    ["https://10.1.2.3", "fd00::/8", false],
    ["https://10.1.2.3", "relay.example/8", false],
    ["http://relay.example", "relay.example:80", true],
    ["http://relay.example.", "relay.example", true],
    ["https://[fd00::7]:444", "fd00::7", true],
    ["https://[fd00::7]:444", "[fd00::7]:444", true],
    // nodejs/undici#5616
    ["https://[fd00::7]:444", "FD00:0:0::0007", true],
    ["https://[fd00::7]:444", "[fd00:0::7]:444", true],
    ["https://[fd00::7]:444", "fd00:0::8", false],
    ["https://[fd00::7]:444", "fd00::/8", true],
    ["https://[fd00::7]:444", "fe00::/8", false],
    ["https://relay.example", "10.0.0.0/8", false],
  ])("for %s %j exempts: %s", (url, list, isExempt) => {
    expect(nameFor(url, { ALL_PROXY: PROXY, no_proxy: list }) === null).toBe(isExempt);
  });
});

it("the option decides before the environment, and for this machine too", () => {
  const environment = { HTTPS_PROXY: PROXY, NO_PROXY: "*" };
  expect(nameFor("https://127.0.0.1", environment, "http://other:1")).toBe("other:1");
  expect(nameFor("https://relay.example", { HTTPS_PROXY: PROXY }, null)).toBe(null);
});

it("credentials go to the proxy, decoded, and are not part of its name", () => {
  const setting = "http://ada:a%40b%25@proxy.example:3128";
  const proxy = proxyFor(new URL("https://relay.example"), setting);
  expect(proxy?.name).toBe("proxy.example:3128");
  expect(proxy?.authorization).toBe(`Basic ${btoa("ada:a@b%")}`);
  for (const [user, basic] of [
    ["", null],
    ["ada@", "ada:"],
    [":secret@", ":secret"],
  ] as const) {
    const one = proxyFor(new URL("https://relay.example"), `http://${user}proxy.example:3128`);
    expect(one?.authorization).toBe(basic === null ? null : `Basic ${btoa(basic)}`);
  }
  const odd = proxyFor(new URL("https://relay.example"), "http://ada:50%@proxy.example");
  expect(odd?.authorization).toBe(`Basic ${btoa("ada:50%")}`);
});

it.each(["socks5://ada:hidden@proxy.example", "http://", "http://ada:hidden@a b", "://hidden"])(
  "a setting that names no HTTP proxy is told without its secrets: %s",
  (setting) => {
    const find = () => nameFor("https://relay.example", { HTTPS_PROXY: setting });
    expect(find).toThrow(/^HTTPS_PROXY (names a socks5:|does not name)/);
    expect(find).not.toThrow(/hidden/);
    expect(find).toThrow(expect.objectContaining({ code: "PROXY_SETTING" }));
    expect(() => nameFor("https://relay.example", {}, setting)).toThrow(/^the option `proxy` /);
  },
);

/** Node's types do not have them. */
const idleMs = (agent: object | undefined): unknown =>
  (agent as { options?: { timeout?: number } } | undefined)?.options?.timeout;

it.each(["http:", "https:"])(
  "%s keeps a proxy's idle connections no longer than others",
  (scheme) => {
    expect(idleMs(globalAgent)).toBeGreaterThan(0);
    const agent = agentFor(new URL(`${scheme}//relay.example`), PROXY);
    expect(idleMs(agent)).toBe(idleMs(globalAgent));
    expect(agent?.constructor).toBe(scheme === "https:" ? HttpsAgent : HttpAgent);
  },
);

it("a proxy is connected to by its bare address", () => {
  const hostOf = (setting: string) => proxyFor(new URL("https://relay.example"), setting)?.host;
  expect(hostOf("http://[fd00::1]:3128")).toBe("fd00::1");
  expect(hostOf("http://proxy.example.:3128")).toBe("proxy.example");
});

it("where no proxy is on the way there is no agent of its own", () => {
  expect(agentFor(new URL("https://relay.example"), null)).toBe(undefined);
});
