/** What is particular to browsers' sockets, of which this one never opens. */
import { makeToken } from "@blindrelay/protocol";
import { afterEach, expect, it, vi } from "vitest";
import { connect } from "./index.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

it("an address that the page may not connect to is UNREACHABLE, at once and with the reason", async () => {
  const reason = "An insecure WebSocket connection may not be initiated from a page over HTTPS.";
  vi.stubGlobal(
    "WebSocket",
    class {
      constructor() {
        throw new DOMException(reason, "SecurityError");
      }
    },
  );
  const accountToken = makeToken("account", new Uint8Array(32).fill(1));
  await expect(connect({ url: "ws://relay.example", accountToken })).rejects.toMatchObject({
    code: "UNREACHABLE",
    message: expect.stringContaining(reason),
  });
});
