/** A device behind TCP: plain bytes, no settings. RFC 2217 runs over it too. */
import { readFileSync } from "node:fs";
import { connect, isIPv6, type Socket } from "node:net";
import {
  NO_STATUS,
  PortError,
  type PortEvents,
  type PortOpener,
} from "@blindrelay/agent-sdk/bridge";
import { ADDRESS_TIMEOUT } from "@blindrelay/protocol/net/node";

const CONNECT_LIMIT_MS = 10_000;
/** These detect a dead peer behind a live cable, while nothing is sent. */
const KEEPALIVE_MS = 15_000;

/**
 * While bytes are under way the system sends no keep-alives, and repeats those bytes for a quarter
 * of an hour. So a connection on which none is acknowledged for this long is lost.
 */
const ACKNOWLEDGED_WITHIN_MS = 20_000;
/** How often that is looked at, in that time. */
const LOOKS = 10;

/** Linux' tables of TCP connections: local and remote address, state, queue to be acknowledged. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** Of those that are established (01). */
const ROW = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) 01 ([0-9A-F]{8}):/gm;

/** One text for each address. */
const plain = (address: string): string =>
  isIPv6(address) ? new URL(`http://[${address.replace(/%.*/, "")}]`).hostname : address;

/** An address as a table has it: in words, each in the machine's own order of bytes. */
export const addressIn = (table: string): string => {
  const words = (table.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  const bytes = Buffer.from(Uint32Array.from(words).buffer);
  if (bytes.length === 4) return bytes.join(".");
  return plain((bytes.toString("hex").match(/.{4}/g) ?? []).join(":"));
};

/** Bytes that the other side has not acknowledged; null where the system does not tell. */
const unacknowledged = ({ localPort, remoteAddress, remotePort }: Socket): number | null => {
  if (remoteAddress === undefined) return null;
  const address = plain(remoteAddress);
  for (const table of TABLES) {
    let text: string;
    try {
      text = readFileSync(table, "utf8");
    } catch {
      continue;
    }
    for (const [, local = "", host = "", remote = "", queue = ""] of text.matchAll(ROW)) {
      const [from, to, bytes] = [local, remote, queue].map((hex) => Number.parseInt(hex, 16));
      const isOurs = from === localPort && to === remotePort && addressIn(host) === address;
      if (isOurs) return bytes as number;
    }
  }
  return null;
};

/** Calls `lost` if bytes are under way and none is acknowledged for `limitMs`. */
const watchAcknowledgements = (socket: Socket, limitMs: number, lost: () => void): void => {
  let acknowledged = -1;
  let since = 0;
  const timer = setInterval(() => {
    const left = unacknowledged(socket);
    const done = socket.bytesWritten - socket.writableLength - (left ?? 0);
    if (left === null || left === 0 || done > acknowledged) since = performance.now();
    acknowledged = done;
    if (performance.now() - since >= limitMs) lost();
  }, limitMs / LOOKS);
  socket.once("close", () => clearInterval(timer));
};

/** Connects; rejects with a PortError. `events` are not called before it has resolved. */
export const openSocket = (
  host: string,
  port: number,
  events: PortEvents,
  limitMs = ACKNOWLEDGED_WITHIN_MS,
): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, ...ADDRESS_TIMEOUT });
    const fail = (error: Error & { errors?: readonly Error[] }): void => {
      socket.destroy();
      // Of several addresses the error has no text of its own.
      reject(new PortError("gone", error.message || String(error.errors?.[0]?.message), error));
    };
    const timer = setTimeout(
      () => fail(new Error(`${host}:${port} does not answer`)),
      CONNECT_LIMIT_MS,
    );
    socket.once("error", fail);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", fail);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEPALIVE_MS);
      let reason = "the other side hung up";
      socket.on("data", (bytes: Uint8Array) => events.data(bytes));
      socket.on("error", (error) => {
        reason = error.message;
      });
      watchAcknowledgements(socket, limitMs, () => {
        reason = `${host}:${port} has not taken what was sent for ${limitMs / 1000} s`;
        socket.destroy();
      });
      socket.on("end", () => socket.destroy());
      socket.on("close", () => events.closed(reason));
      resolve(socket);
    });
    socket.once("error", () => clearTimeout(timer));
  });

/** Resolves when the system has accepted the bytes. Rejects with a PortError. */
export const writeSocket = (socket: Socket, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    const gone = (): void => reject(new PortError("gone", "the connection is gone"));
    if (socket.destroyed) {
      gone();
      return;
    }
    socket.once("close", gone);
    socket.write(bytes, (error) => {
      socket.off("close", gone);
      if (error) gone();
      else resolve();
    });
  });

export const closeSocket = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve()).destroy();
  });

export const tcpOpener =
  (host: string, port: number, limitMs?: number): PortOpener =>
  async (_settings, events) => {
    const socket = await openSocket(host, port, events, limitMs);
    const unsupported = (): Promise<never> =>
      Promise.reject(
        new PortError("unsupported", "plain TCP has no line settings: use rfc2217://"),
      );
    return {
      write: (bytes) => writeSocket(socket, bytes),
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      configure: unsupported,
      control: unsupported,
      status: async () => NO_STATUS,
      close: () => closeSocket(socket),
    };
  };
