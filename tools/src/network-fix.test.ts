/** A relay that cannot be reached: each failure as the network really reports it, with its fix. */
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { expect, it, onTestFinished } from "vitest";
import { callFailure } from "./call-failure.ts";
import { Rest } from "./rest.ts";

const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
};

/** The errors of `call` and `agent list` for the same address. */
const failuresAt = async (base: string): Promise<string[]> => {
  const accountToken = makeToken("account", new Uint8Array(32));
  const link = await connect({ url: base, accountToken }).then(
    () => "connected",
    (error) => callFailure(error).message,
  );
  const rest = await new Rest(base, null).ask("AgentPage", "GET", "/agents").then(
    () => "answered",
    (error: Error) => error.message,
  );
  return [link, rest];
};

it("https to a relay that uses http", async () => {
  const port = await listen(createHttpServer((_request, response) => response.end()));
  for (const message of await failuresAt(`https://127.0.0.1:${port}`)) {
    expect(message).toContain("fix: this address does not use TLS: use http://");
    expect(message).not.toContain("openssl");
  }
});

it("another service's port", async () => {
  const port = await listen(createServer((socket) => socket.on("data", () => socket.destroy())));
  for (const message of await failuresAt(`http://127.0.0.1:${port}`)) {
    expect(message).toContain("fix: is this a relay's address and port?");
  }
});

it("nobody listens", async () => {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  for (const message of await failuresAt(`http://127.0.0.1:${port}`)) {
    expect(message).toContain("fix: is the relay running, and is the port right?");
  }
});

it("a web server that is not a relay", async () => {
  const port = await listen(createHttpServer((_request, response) => response.end("hello")));
  const [link] = await failuresAt(`http://127.0.0.1:${port}`);
  expect(link).toContain("fix: is this a relay's address?");
});
