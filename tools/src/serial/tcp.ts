/** A device behind TCP: plain bytes, no settings. RFC 2217 runs over it too. */
import { connect, type Socket } from "node:net";
import { NO_STATUS, PortError, type PortEvents, type PortOpener } from "./port.ts";

const CONNECT_LIMIT_MS = 10_000;
/** These detect a dead peer behind a live cable. */
const KEEPALIVE_MS = 15_000;

/** Connects; rejects with a PortError. `events` are not called before it has resolved. */
export const openSocket = (host: string, port: number, events: PortEvents): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(new PortError("gone", error.message, error));
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
  (host: string, port: number): PortOpener =>
  async (_settings, events) => {
    const socket = await openSocket(host, port, events);
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
