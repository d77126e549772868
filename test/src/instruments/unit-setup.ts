/**
 * Vitest set-up of the unit tests: a test that listens, connects or starts a process fails, with an
 * error that says where it belongs. They share threads, and run at every change in watch mode.
 */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { STARTERS } from "./child-processes.ts";

const refuse = (what: string) => () => {
  throw new Error(
    `a unit test ${what}: name its file among those of "edge" or "process" in vitest.config.ts`,
  );
};

net.Server.prototype.listen = refuse("listens");
net.Socket.prototype.connect = refuse("connects");
for (const name of STARTERS) Object.assign(childProcess, { [name]: refuse("starts a process") });
syncBuiltinESMExports();
