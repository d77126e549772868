/**
 * Loaded into a process that is measured: says over IPC how much processor time the process has
 * used, by its own accounting. The same probe sits in every contender, so what asking costs is the
 * same for all.
 */
process.on("message", (message) => {
  if (message !== "cpu") return;
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
// Being asked must not keep a process alive that wants to end.
process.channel?.unref();
