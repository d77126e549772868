import { relayUrl } from "@blindrelay/protocol/relay-url";
import { expect, it } from "vitest";
import { parseAddress } from "./url.ts";

it.each([
  "https://relay.example",
  "http://127.0.0.1:8080/",
  "https://example.org/relay/",
  "https://example.org/relay",
  "ws://127.0.0.1:1",
  "wss://relay.example/wss",
  "https://relay.example/wss",
  "wss://relay.example:4433/other",
])("parses %s like the other runtimes", (text) => {
  const url = new URL(relayUrl(text));
  const secure = url.protocol === "wss:";
  expect(parseAddress(text)).toEqual({
    secure,
    host: url.hostname,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname,
  });
});
