/**
 * Loaded into the relay's process before it starts: answers any message on its IPC channel with the
 * bytes of live JavaScript objects.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

process.on("message", () => {
  collect();
  process.send?.(process.memoryUsage().heapUsed);
});
process.channel?.unref(); // The channel does not keep the relay running.
