/** An agent that reads nothing: whoever sends to it is told, and its queue stays bounded. */
import type { RawWorld } from "./driver-raw.ts";

const BYTES = 45_000;
/** Well over the relay's queue and the kernels' buffers. */
const MESSAGES = 60;
const PACE_MS = 20;

export const slow = async (raw: RawWorld): Promise<void> => {
  const agent = await raw.agent();
  const peer = (await raw.client())?.peer;
  if (agent === null || peer === undefined || !raw.isQuiet) return;
  agent.stall(true);
  const p = "A".repeat(BYTES);
  for (let seq = 1; seq <= MESSAGES; seq++) {
    peer.send(raw.envelope("slow.x", seq, p));
    await raw.sleep(PACE_MS);
  }
  const told = await peer.next(({ code }) => code === "SLOW_CONSUMER");
  if (told === null && raw.isQuiet && !peer.isOver && !agent.isOver) {
    raw.untold(`${MESSAGES} messages of ${BYTES} bytes to an agent that reads nothing, no answer`);
  }
  agent.stall(false);
};
