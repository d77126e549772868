/**
 * A client that binds more sids than a connection may have, using one of them all the time: the
 * least recently used ones go, and this one stays.
 */
import type { RawWorld } from "./driver-raw.ts";

const MANY = 1_100;
const BATCH = 40;
const BATCH_MS = 50;

export const bindings = async (raw: RawWorld): Promise<void> => {
  const agent = await raw.agent();
  const peer = (await raw.client())?.peer;
  if (agent === null || peer === undefined || !raw.isQuiet) return;
  const used = raw.name(12);
  peer.send(raw.envelope(`${used}.x`, 1));
  for (let sent = 0; sent < MANY; sent += BATCH) {
    for (let i = 0; i < BATCH; i++) peer.send(raw.envelope(`${raw.name(12)}.x`, 1));
    peer.send(bare(used, 2 + sent));
    await raw.sleep(BATCH_MS);
  }
  await raw.sleep(2_000);
  peer.heard.length = 0;
  agent.heard.length = 0;
  peer.send(bare(used, 9_999));
  const arrived = await agent.next((told) => told.sid?.startsWith(used) === true);
  if (!raw.isQuiet || peer.isOver || agent.isOver || arrived !== null) return;
  const code = peer.heard.find(({ type }) => type === "error")?.code ?? "no answer";
  raw.untold(`a session that is in use lost its binding: ${code}`);
};

const bare = (sid: string, seq: number): string =>
  JSON.stringify({ v: "1", sid: `${sid}.x`, seq, p: "AAAA" });
