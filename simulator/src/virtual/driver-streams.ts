/** Byte streams in both directions: complete, or ended with an error; whole while all is well. */
import { byteAt, pattern } from "../devices/busy.ts";
import type { VirtualClient } from "./client.ts";
import type { Device } from "./device.ts";
import type { DriverWorld } from "./driver-world.ts";

const SIZES = [1, 12_288, 100_000, 300_000];
const WRITE = 10_000;
/** More than a stream takes, unless it hangs. */
const LIMIT_MS = 240_000;

export const streams = async (
  world: DriverWorld,
  client: VirtualClient,
  device: Device,
): Promise<void> => {
  const { clock, liveness } = world;
  const fromUs = clock.nowUs;
  if (client.sdk === null || !client.online || !device.online) return;
  const what = `${client.id}: a stream with ${device.id}`;
  const agent = client.sdk.agent(device.id, device.agentToken, device.agentOptions);
  const size = SIZES[Math.floor(fromUs / 1000) % SIZES.length] as number;
  let isOver = false;
  clock.after(LIMIT_MS, () => {
    if (!isOver && liveness.wasCalm(fromUs)) world.violate("events", `${what} never ends`);
  });
  try {
    const reader = await agent.readStream("busy.read", { size });
    let at = 0;
    for await (const bytes of reader) {
      for (const byte of bytes) {
        if (byte !== byteAt(at)) world.violate("events", `${what}: byte ${at} is wrong`);
        at += 1;
      }
    }
    if (at !== size) world.violate("events", `${what} ended as complete after ${at} of ${size}`);
    const writer = await agent.writeStream("busy.write", {});
    for (let sent = 0; sent < size; sent += WRITE) {
      await writer.write(pattern(sent, Math.min(WRITE, size - sent)));
    }
    await writer.end();
  } catch (error) {
    const text = (error as Error).message;
    if (liveness.wasCalm(fromUs))
      world.violate("events", `${what} failed without any fault: ${text}`);
  }
  isOver = true;
};
