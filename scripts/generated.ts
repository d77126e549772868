/**
 * Generated data (vectors) is committed, and this checks it: it runs the `generate` script of every
 * package that has one, and fails if that changed, added or removed a file. The new files stay in
 * place, ready to be committed.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { readFiles } from "./proofs.ts";

const root = resolve(import.meta.dirname, "..");
const packages = globSync("*/package.json", { cwd: root }).flatMap((path) => {
  const { scripts } = JSON.parse(readFileSync(resolve(root, path), "utf8"));
  return scripts?.generate === undefined
    ? []
    : [{ folder: dirname(path), command: String(scripts.generate) }];
});
let problems = 0;
for (const { folder, command } of packages) {
  const before = new Map(readFiles(root));
  const { status } = spawnSync(command, {
    cwd: resolve(root, folder),
    shell: true,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) {
    console.error(`${folder}: \`${command}\` failed`);
    problems++;
    continue;
  }
  const after = new Map(readFiles(root));
  const paths = [...new Set([...before.keys(), ...after.keys()])];
  for (const path of paths.filter((path) => before.get(path) !== after.get(path))) {
    console.error(`${path} was not what \`${command}\` makes; it is now: look at it and commit it`);
    problems++;
  }
}
console.log(`generated: ${packages.length} generators, ${problems} problems`);
process.exitCode = problems > 0 ? 1 : 0;
