/**
 * Child processes that never outlive their parent: asked to end first, then killed; and killed when
 * this process exits for any reason that it can observe.
 */
import { type ChildProcess, fork } from "node:child_process";

const running = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts and watches a process of this program that speaks with this one. */
export function forkJob(program: string, flags: readonly string[] = []): ChildProcess {
  return watch(
    fork(program, {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      execArgv: [...flags, "--disable-warning=ExperimentalWarning"],
    }),
  );
}

/** Watches a child until it has ended. Returns the child. */
export function watch<T extends ChildProcess>(child: T): T {
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.once("error", () => running.delete(child));
  return child;
}

/** "exit code 1" or "SIGKILL": how a child ended. Resolves at once if it has ended. */
export function whenEnded(child: ChildProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const tell = (code: number | null, signal: string | null): void =>
    resolve(signal ?? `exit code ${code}`);
  if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode);
  child.once("exit", tell);
  child.once("error", (error) => resolve(error.message));
  return promise;
}

/**
 * Asks a child to end with `ask`, and kills it if it has not ended after `graceMs`. Resolves when
 * it has ended.
 */
export async function stopChild(
  child: ChildProcess,
  ask: () => void,
  graceMs: number,
): Promise<void> {
  const ended = whenEnded(child);
  const kill = setTimeout(() => child.kill("SIGKILL"), graceMs);
  ask();
  await ended;
  clearTimeout(kill);
}
