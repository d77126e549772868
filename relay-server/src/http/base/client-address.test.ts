/**
 * Which address counts (section 3, "lockout scope"): forwarded ones only from configured proxies.
 */
import type { IncomingMessage } from "node:http";
import { expect, test, vi } from "vitest";
import { addressReader } from "./client-address.ts";

const request = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as unknown as IncomingMessage;

test.each([
  ["no header", [], "192.0.2.1", undefined, "192.0.2.1"],
  ["a header from anybody", [], "192.0.2.1", "198.51.100.7", "192.0.2.1"],
  ["a trusted proxy", ["192.0.2.1"], "192.0.2.1", "198.51.100.7", "198.51.100.7"],
  ["a trusted range", ["192.0.2.0/24"], "192.0.2.9", "198.51.100.7", "198.51.100.7"],
  [
    "a client's own forged start of the list",
    ["192.0.2.1"],
    "192.0.2.1",
    "9.9.9.9, 198.51.100.7",
    "198.51.100.7",
  ],
  [
    "two proxies in a row",
    ["192.0.2.0/24"],
    "192.0.2.1",
    "198.51.100.7, 192.0.2.2",
    "198.51.100.7",
  ],
  ["nonsense in the header", ["192.0.2.1"], "192.0.2.1", "unknown, ", "192.0.2.1"],
  ["a hop that is no address", ["192.0.2.1"], "192.0.2.1", "9.9.9.9, unknown", "192.0.2.1"],
  [
    "a proxy that writes the port",
    ["192.0.2.1"],
    "192.0.2.1",
    "9.9.9.9, 198.51.100.7:4711",
    "198.51.100.7",
  ],
  [
    "a proxy that writes the port of an IPv6 address",
    ["192.0.2.1"],
    "192.0.2.1",
    "9.9.9.9, [2001:db9::5]:4711",
    "2001:db9::5",
  ],
  ["an IPv6 proxy", ["2001:db8::/32"], "2001:db8::1", "2001:db9::5", "2001:db9::5"],
  [
    "an IPv4 proxy seen through an IPv6 socket",
    ["192.0.2.1"],
    "::ffff:192.0.2.1",
    "198.51.100.7",
    "198.51.100.7",
  ],
] as const)("%s", (_what, trusted, remote, forwarded, expected) => {
  const addressOf = addressReader(trusted, () => undefined);
  expect(addressOf(request(remote, forwarded))).toBe(expected);
});

test("an untrusted sender of the header is logged once", () => {
  const warn = vi.fn();
  const addressOf = addressReader([], warn);
  addressOf(request("192.0.2.1"));
  expect(warn).not.toHaveBeenCalled();
  addressOf(request("192.0.2.1", "x"));
  addressOf(request("192.0.2.2", "x"));
  expect(warn.mock.calls).toEqual([["192.0.2.1"]]);
});

// "10.0.0.0/" was once read as 10.0.0.0/0, which trusted everybody's header.
test.each(["proxy.example", "10.0.0.0/x", "", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/33"])(
  "%j cannot be a trusted proxy",
  (text) => {
    expect(() => addressReader([text], () => undefined)).toThrow(
      /neither an address nor a range|out of range/i,
    );
  },
);
