/** The part of a trace that concerns one call: what passed between its client and its device. */
import type { Entry } from "./trace.ts";

export interface TracedCall {
  readonly fromUs: number;
  readonly client: string;
  readonly device: string;
}

/** The client's part of a session's name, in a packet or its envelope. */
const SID = /\\?"sid\\?":\\?"([^".\\]+)/;
const PACKET = /^(up|down)$/;

/** `entries`: oldest first. Of a client's packets, only those of sessions with the device. */
export function timelineOf(
  entries: readonly Entry[],
  { fromUs, client, device }: TracedCall,
): Entry[] {
  const isOf = ({ who }: Entry, id: string): boolean =>
    who === id || who.startsWith(`${id}#`) || who.split(" ").includes(id);
  const recent = entries.filter(({ atUs }) => atUs >= fromUs);
  const own = new Set(
    recent.flatMap((entry) => (isOf(entry, device) ? [SID.exec(entry.text)?.[1]] : [])),
  );
  const named = `"agent_id":"${device}"`;
  return recent.filter((entry) => {
    if (isOf(entry, device) || !PACKET.test(entry.what)) {
      return isOf(entry, device) || entry.who === client || entry.who.startsWith(`${client}#`);
    }
    const sid = SID.exec(entry.text)?.[1];
    return isOf(entry, client) && (own.has(sid) || entry.text.includes(named));
  });
}
