import { expect, it } from "vitest";
import { relayUrl, restBase } from "./relay-url.ts";

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
  ["https://relay.example/base/wss", "wss://relay.example/base/wss"],
  ["https://relay.example/wss/base", "wss://relay.example/wss/base/wss"],
])("finds the relay of %s", (base, expected) => {
  expect(relayUrl(base)).toBe(expected);
});

it.each([
  ["relay.example", "not a URL: relay.example"],
  ["", "not a URL: "],
  ["ftp://relay.example", "expected an http, https, ws or wss URL, got ftp://relay.example"],
  ["xhttps://relay.example", "expected an http, https, ws or wss URL, got xhttps://relay.example"],
])("refuses %j with a TypeError", (text, reason) => {
  expect(() => relayUrl(text)).toThrow(TypeError);
  expect(() => relayUrl(text)).toThrow(reason);
});

it.each([
  ["wss://relay.example/wss", "https://relay.example"],
  ["http://relay.example/base/", "http://relay.example/base"],
  ["https://wss.example/wss/base", "https://wss.example/wss/base"],
])("finds the REST interface of %s", (text, base) => {
  expect(restBase(text)).toBe(base);
});
