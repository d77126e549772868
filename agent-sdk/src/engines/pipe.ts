/** Named pipes to a child process, for talking to it without waiting for Node's event loop. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

interface Pipe {
  /** Descriptors of the ends; the child's is closed here once the child has it. */
  readonly child: number;
  readonly ours: number;
}

/**
 * One direction, through a pipe made at `path`; the file may be removed afterwards. `waits`:
 * reading our end waits for the child; else it throws EAGAIN if nothing is there.
 */
export const makePipe = (path: string, childReads: boolean, waits = true): Pipe => {
  execFileSync("mkfifo", [path]);
  // Neither open below waits, because this one is there first.
  const both = openSync(path, "r+");
  const child = openSync(path, childReads ? "r" : "w");
  const reading = constants.O_RDONLY | (waits ? 0 : constants.O_NONBLOCK);
  const ours = openSync(path, childReads ? "w" : reading);
  closeSync(both);
  return { child, ours };
};
