/** Two clients with one session token send more requests than it may. */
import { SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import type { RawPeer, RawWorld } from "./driver-raw.ts";

/** Below the relay's thousand a second for one connection. */
const BATCH = 45;
const BATCH_MS = 50;
const OVER = 20;

export const flood = async (raw: RawWorld): Promise<void> => {
  const first = await raw.client();
  if (first === null || !raw.isQuiet) return;
  const second = await raw.client(first.session);
  if (second === null) return;
  const both = [first.peer, second.peer];
  const isOver = (): boolean => both.some((peer) => peer.heard.some(isLimit) || peer.isOver);
  let sent = 0;
  let taken = 0;
  // A slow store holds them back: it is asked for each one whose agent is unknown.
  const areAnswered = (): boolean =>
    taken + both.reduce((sum, { heard }) => sum + heard.length, 0) >= sent;
  for (let turn = 0; sent < SESSION_MAX_REQUESTS + OVER && !isOver(); turn++) {
    const peer = both[turn & 1] as RawPeer;
    // To nobody: each one counts, delivered or not.
    for (let i = 0; i < BATCH; i++) peer.send(raw.envelope(`s${sent + i}.x`, 1, "AAAA", "nobody"));
    sent += BATCH;
    taken += peer.heard.splice(0).length;
    await raw.sleep(BATCH_MS);
  }
  if (sent < SESSION_MAX_REQUESTS + OVER) return;
  await first.peer.until(() => isOver() || areAnswered());
  if (raw.isQuiet && !isOver() && areAnswered())
    raw.untold(`${sent} requests of one session token, and no limit`);
};

const isLimit = ({ code }: { code?: string }): boolean => code === "LIMIT_EXCEEDED";
