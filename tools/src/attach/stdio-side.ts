/** Standard input and output as the port. */
import type { LocalSide, Remote } from "./local-side.ts";

/** `ended`: standard input is at its end, or nobody reads standard output any more. */
export const openStdio = (remote: Remote, ended: (isRead: boolean) => void): LocalSide => {
  const { stdin, stdout } = process;
  stdin.on("data", (bytes: Uint8Array) => {
    remote.write(bytes);
    if (remote.room <= 0) stdin.pause();
  });
  stdin.on("end", () => ended(true));
  // A socket that was reset, a terminal that is gone.
  stdin.on("error", () => ended(true));
  stdout.on("error", () => ended(false));
  return {
    where: "standard input and output",
    deliver: (bytes) => {
      const { length } = bytes;
      stdout.write(bytes, () => remote.taken(length));
    },
    writable: () => {
      if (remote.room > 0) stdin.resume();
    },
    close: async () => {
      stdin.pause();
    },
  };
};
