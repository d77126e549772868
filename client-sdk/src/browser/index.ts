/** The client in browsers and other runtimes with a global WebSocket and crypto: `connect`. */

import { OUTBOX_BYTES } from "@blindrelay/protocol";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { nobleSuite } from "@blindrelay/protocol/suites/noble";
import { nobleX25519 as x25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { PONG_TEXT } from "@blindrelay/protocol/wire";
import { Client, type ConnectOptions, type ListMatching } from "../client.ts";
import { hedgedRandom } from "../edge-ports.ts";
import type { LinkPort, Log, Random } from "../ports.ts";

export * from "../index.ts";

/** A page over HTTPS may not connect to `ws://`, nor anywhere that its policy does not name. */
const socketTo = (url: string): WebSocket | string => {
  try {
    return new WebSocket(url);
  } catch (cause) {
    return (cause as Error).message;
  }
};

const link: LinkPort = {
  connect: (url, events) => {
    const socket = socketTo(url);
    if (typeof socket === "string") {
      setTimeout(() => events.closed(1006, socket));
      return { send: () => undefined, close: () => undefined };
    }
    socket.onopen = () => events.opened();
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") events.received(data);
    };
    socket.onclose = ({ code, reason }) => events.closed(code, reason);
    return {
      send: (text) => {
        // As on Node: a relay that pings without reading needs no more pongs.
        if (text === PONG_TEXT && socket.bufferedAmount > OUTBOX_BYTES) return;
        if (socket.readyState === WebSocket.OPEN) socket.send(text);
      },
      close: (code, reason) => socket.close(code, reason),
    };
  },
};

const browserRandom: Random = (length) => crypto.getRandomValues(new Uint8Array(length));

const silent: Log = () => undefined;

/** See node/index.ts. */
const listing =
  ({ url, accountToken, sessionToken }: ConnectOptions): ListMatching =>
  async (where) => {
    const { fetchHttp, Rest } = await import("../rest/core.ts");
    const check = async () => null;
    const token = accountToken ?? sessionToken ?? null;
    const rest = new Rest({ url, token }, { check, http: fetchHttp });
    const found = await rest.list("AgentPage", "/agents", { where });
    return found.map(({ agent_id }) => agent_id);
  };

/** Connects and authenticates as on Node; the client reconnects by itself until `close`. */
export const connect = (options: ConnectOptions): Promise<Client> => {
  const log = options.log ?? silent;
  const suite = nobleSuite();
  const random = hedgedRandom(browserRandom, suite);
  const ports = { link, timer: systemTimer(), random, suite, x25519, log };
  return new Promise((resolve) => resolve(new Client(options, ports, listing(options)).start()));
};
