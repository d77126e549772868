import { expect, it } from "vitest";
import { relayUrl } from "./relay-url.ts";

it.each([
  ["https://relay.example", "wss://relay.example/wss"],
  ["http://127.0.0.1:8080/", "ws://127.0.0.1:8080/wss"],
  ["https://example.org/relay/", "wss://example.org/relay/wss"],
  ["ws://127.0.0.1:1", "ws://127.0.0.1:1/wss"],
  ["wss://relay.example/wss", "wss://relay.example/wss"],
  ["https://relay.example/wss", "wss://relay.example/wss"],
  // coder/coder#1663, and what a browser's address has after it.
  ["https://relay.example//", "wss://relay.example/wss"],
  ["https://relay.example/relay//?x=1#/agents", "wss://relay.example/relay/wss"],
  ["wss://relay.example/wss?gateway=7#/agents", "wss://relay.example/wss?gateway=7"],
  ["wss://relay.example/other", "wss://relay.example/other"],
])("finds the relay of %s", (base, expected) => {
  expect(relayUrl(base)).toBe(expected);
});

it.each(["relay.example", "", "ftp://relay.example"])("refuses %j with a TypeError", (text) => {
  expect(() => relayUrl(text)).toThrow(TypeError);
});
