/**
 * Loaded before a relay's program: kills the process at its n-th change of a file or a database,
 * n in KILLED_AT, as a power failure might.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync, StatementSync } from "node:sqlite";

let left = Number(process.env.KILLED_AT);
const step = () => {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
};

const before = (owner, name) => {
  const plain = owner[name];
  owner[name] = function (...parts) {
    step();
    return Reflect.apply(plain, this, parts);
  };
};
before(DatabaseSync.prototype, "exec");
before(StatementSync.prototype, "run");
before(StatementSync.prototype, "all");
for (const name of [
  "mkdirSync",
  "writeFileSync",
  "renameSync",
  "fsyncSync",
  "rmSync",
  "unlinkSync",
]) {
  before(fs, name);
}
syncBuiltinESMExports();
