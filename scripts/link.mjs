/**
 * `npm run link [-- DIR]`: installs the checkout's commands as files on the PATH, in ~/.local/bin
 * by default. Files instead of aliases, so that `exec`, `timeout`, `sudo` and systemd find them
 * too. `--remove` removes them. Runs on any Node.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const COMMANDS = {
  blindrelay: "tools/src/main.ts",
  "blindrelay-server": "relay-server/src/main.ts",
  "blindrelay-sim": "simulator/src/main.ts",
};
const USAGE = 2;
const MARK = "# Made by blindrelay's npm run link.";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Quoted for a shell, whatever the path contains. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const scriptFor = (source) => {
  const node = join(root, "node_modules", ".bin", "node");
  return `#!/bin/sh\n${MARK}\nexec ${quoted(node)} ${quoted(join(root, source))} "$@"\n`;
};

const fail = (text) => {
  console.error(`link: ${text}`);
  process.exit(USAGE);
};

const words = process.argv.slice(2);
const remove = words.includes("--remove");
const [folder = join(homedir(), ".local", "bin"), ...rest] = words.filter(
  (word) => word !== "--remove",
);
if (rest.length > 0 || folder.startsWith("-")) fail("usage: npm run link [-- DIR] [--remove]");
if (process.platform === "win32") fail("Windows has no shell scripts: use npm run cli -- …");

const target = resolve(folder);
const files = Object.entries(COMMANDS).map(([name, source]) => ({
  path: join(target, name),
  source,
}));
for (const { path } of files) {
  if (existsSync(path) && !readFileSync(path, "latin1").includes(MARK)) {
    fail(`${path} is somebody else's: move it, or name another folder`);
  }
}
if (!remove) mkdirSync(target, { recursive: true });
for (const { path, source } of files) {
  rmSync(path, { force: true });
  if (remove) continue;
  writeFileSync(path, scriptFor(source));
  chmodSync(path, 0o755);
}
console.log(
  `${remove ? "removed from" : "linked into"} ${target}: ${Object.keys(COMMANDS).join(", ")}`,
);
if (!remove && !(process.env.PATH ?? "").split(delimiter).includes(target)) {
  console.log(`it is not on your PATH; for this shell: export PATH=${quoted(target)}:"$PATH"`);
}
