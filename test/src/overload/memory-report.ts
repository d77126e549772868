/**
 * Loaded into the relay's process before its own code: for each message from its parent, collects
 * all garbage and answers how much memory is left. The relay does not know about it.
 */
if (process.channel !== undefined) {
  process.on("message", () => {
    globalThis.gc?.();
    globalThis.gc?.(); // frees buffers of objects that the first collection found
    process.send?.(process.memoryUsage());
  });
  process.on("disconnect", () => process.exit()); // the parent was killed
  process.channel?.unref(); // a relay that has drained must end
}
