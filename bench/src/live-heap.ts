/**
 * Loaded into the relay's process before it starts: answers any message on its IPC channel with the
 * bytes of JavaScript objects that are alive.
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
process.channel?.unref(); // the relay ends as without it
