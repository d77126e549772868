/**
 * Loaded into the relay's process before its own code: for each message of the process that started
 * it, collects all garbage and answers how much memory is left. The relay knows nothing of it.
 */
if (process.channel !== undefined) {
  process.on("message", () => {
    globalThis.gc?.();
    globalThis.gc?.(); // buffers of objects that the first one found are free by then
    process.send?.(process.memoryUsage());
  });
  process.on("disconnect", () => process.exit()); // who started it was killed
  process.channel?.unref(); // a relay that has drained ends
}
