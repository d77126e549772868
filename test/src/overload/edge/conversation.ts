/** What a relay answers to bytes, to a peer that neither closes nor half-closes. */
import { setTimeout as wait } from "node:timers/promises";
import { type RawPeer, rawSocket } from "../raw-socket.ts";
import type { RelayProcess } from "../relay-process.ts";

export interface Conversation {
  answer(): string;
  /** Whether the relay has ended its side. */
  isOver(): boolean;
  end(): void;
}

/** Bounds of one answer, so that a flood of them fits into memory. */
const KEPT = 20_000;

export const converse = (peer: RawPeer, bytes: string | Buffer): Conversation => {
  const socket = rawSocket(peer);
  let [heard, over] = ["", false];
  socket.on("data", (chunk: Buffer) => {
    if (heard.length < KEPT) heard += chunk.toString("latin1");
  });
  // The socket itself stays as it is: half open.
  socket.allowHalfOpen = true;
  for (const event of ["end", "close"]) {
    socket.on(event, () => {
      over = true;
    });
  }
  socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  return { answer: () => heard, isOver: () => over, end: () => socket.destroy() };
};

/** A loopback address for the n-th peer: failures and waiting links are counted by address. */
export const addressFor = (n: number): string => `127.0.${1 + (n % 250)}.${1 + (n % 199)}`;

/** The value of one of the relay's metrics without labels, or the sum over its labels. */
export const metric = async ({ metricsUrl }: RelayProcess, name: string): Promise<number> => {
  const text = await (await fetch(metricsUrl)).text();
  const lines = text.matchAll(new RegExp(`^blindrelay_${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
};

/** Resolves when it holds, or after `ms`, to whether it does. */
export const holdsWithin = async (ms: number, holds: () => boolean | Promise<boolean>) => {
  for (const end = performance.now() + ms; performance.now() < end; await wait(50)) {
    if (await holds()) return true;
  }
  return holds();
};
