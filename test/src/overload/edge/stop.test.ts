/**
 * SIGTERM ends the relay in time, whatever its peers do; each kind of connection is there at once.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { noOpenssl } from "@blindrelay/relay-server/testing";
import { describe, expect, test } from "vitest";
import { frame, rawSocket, UPGRADE } from "../raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { holdsWithin, metric } from "./conversation.ts";

/** As docs/operations.md says. */
const STOP_MS = 20_000;
const HEAD = "GET /api/v1/auth/config HTTP/1.1\r\nHost: x\r\n";
const POST = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
const DOCUMENT = "GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
const HALF_HELLO = Buffer.from("16030100f8010000f40303aa", "hex");

interface Kind {
  /** What the peer sends at once. */
  readonly says?: string | Buffer;
  /** And after the first answer. */
  readonly later?: string | Buffer;
  /** It never reads. */
  readonly deaf?: true;
  /** It sends its end, but not the socket's. */
  readonly ends?: true;
  /** Below TLS, if there is TLS. */
  readonly raw?: true;
}

const upgradeWith = (from: string, to: string): string => `${UPGRADE.replace(from, to)}\r\n`;

const KINDS = (account: string): Readonly<Record<string, Kind>> => {
  const auth = frame(
    1,
    JSON.stringify({ type: "auth", client_type: "client", api_token: account }),
  );
  return {
    "a connection that says nothing": {},
    "the same without a handshake": { raw: true },
    "half a ClientHello, or of a head": { says: HALF_HELLO, raw: true },
    "plain HTTP": { says: `${HEAD}\r\n`, raw: true },
    "half a head": { says: HEAD },
    "half a body": { says: `${POST}Content-Length: 100\r\n\r\n{"user` },
    "half a chunk": { says: `${POST}Transfer-Encoding: chunked\r\n\r\n5\r\n{"` },
    "a body that waits for 100": {
      says: `${POST}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
    },
    "an answered request, kept alive": { says: `${HEAD}\r\n` },
    "an answered request, then its end": { says: `${HEAD}\r\n`, ends: true },
    "a malformed request": { says: "\0\0\0\r\n\r\n" },
    "answers that nobody reads": { says: DOCUMENT.repeat(8), deaf: true },
    "an upgrade of another version": { says: upgradeWith("Version: 13", "Version: 8") },
    "an upgrade without a key": { says: upgradeWith("AAAAAAAAAAAAAAAAAAAAAA==", "") },
    "an upgrade by POST": { says: upgradeWith("GET", "POST") },
    "an upgrade with a body to come": { says: `${UPGRADE}Content-Length: 1\r\n\r\n` },
    "an upgrade in HTTP/1.0": { says: upgradeWith("HTTP/1.1", "HTTP/1.0") },
    "an upgrade behind a request": { says: `${HEAD}\r\n${UPGRADE}\r\n` },
    "a refused upgrade that nobody reads": { says: upgradeWith("GET", "PUT"), deaf: true },
    "a link without auth": { says: `${UPGRADE}\r\n` },
    "a link that is deaf": { says: `${UPGRADE}\r\n`, deaf: true },
    "a link that answers no close": { says: `${UPGRADE}\r\n`, later: auth },
    "a link with half a frame": { says: `${UPGRADE}\r\n`, later: auth.subarray(0, 9) },
    "a link with half a message": { says: `${UPGRADE}\r\n`, later: frame(1, "{", { fin: false }) },
    "a link that has sent its close": { says: `${UPGRADE}\r\n`, later: frame(8, "\u0003\u00e8") },
    "a link that broke the rules": { says: `${UPGRADE}\r\n`, later: frame(3, "x") },
    "a link that has sent its end": { says: `${UPGRADE}\r\n`, later: auth, ends: true },
  };
};

const open = async (relay: RelayProcess, kind: Kind): Promise<Socket> => {
  const tls = relay.tls && kind.raw !== true;
  const socket = rawSocket({ port: relay.port, tls });
  socket.allowHalfOpen = true; // it never answers an end
  await once(socket, tls ? "secureConnect" : "connect");
  if (kind.says !== undefined) socket.write(kind.says);
  if (kind.deaf !== true) socket.on("data", () => undefined);
  if (kind.later !== undefined) {
    await once(socket, "data");
    socket.write(kind.later);
  }
  if (kind.ends === true) socket.end();
  return socket;
};

describe.each([{ tls: false }, ...(noOpenssl ? [] : [{ tls: true }])])("with TLS: $tls", (way) => {
  test(`SIGTERM ends it within ${STOP_MS / 1000} s`, async () => {
    const relay = await startRelayProcess([], way);
    const scrape = connect({ port: Number(new URL(relay.metricsUrl).port), host: "127.0.0.1" });
    const sockets = new Map<string, Socket>([["half a scrape", scrape]]);
    scrape.on("error", () => undefined).write("GET /metrics HTTP/1.1\r\nHost: x\r\n");
    try {
      for (const [name, kind] of Object.entries(KINDS(relay.account))) {
        sockets.set(name, await open(relay, kind));
      }
      // A gone one is no proof: most are still there.
      expect(await metric(relay, "pending_connections")).toBeGreaterThan(6);
      expect(await metric(relay, "connections")).toBeGreaterThan(2);
      relay.child.kill("SIGTERM");
      const isOver = () => !relay.isAlive();
      const inTime = await holdsWithin(STOP_MS, isOver);
      const left = [...sockets].filter(
        ([, { closed, readableEnded }]) => !closed && !readableEnded,
      );
      expect([inTime, inTime ? [] : left.map(([name]) => name)]).toEqual([true, []]);
      expect(relay.child.exitCode).toBe(0);
      expect(relay.log.filter((line) => /"level":[56]0/.test(line))).toEqual([]);
    } finally {
      for (const socket of sockets.values()) socket.destroy();
      await relay.stop();
    }
  });
});

test("what was refused is gone within seconds while the relay runs, and a descriptor with it", async () => {
  const relay = await startRelayProcess();
  try {
    const refused = Object.entries(KINDS(relay.account)).filter(([name]) =>
      /upgrade|malformed/.test(name),
    );
    expect(refused.length).toBeGreaterThan(6);
    const sockets = await Promise.all(
      refused.flatMap(([, kind]) => Array.from({ length: 20 }, () => open(relay, kind))),
    );
    // The one that this process keeps, and the upgrades behind a request, which are kept alive.
    const isGone = async () => (await metric(relay, "pending_connections")) <= 1 + 20;
    expect(await holdsWithin(10_000, isGone)).toBe(true);
    for (const socket of sockets) socket.destroy();
  } finally {
    await relay.stop();
  }
});
