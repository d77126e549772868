/**
 * Generated data (vectors) is committed, and this checks it: it runs the `generate` script of every
 * package that has one, and fails if that changed, added or removed a file. The new files stay in
 * place, ready to be committed.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

function packagesWithGenerator(): { folder: string; command: string }[] {
  return readdirSync(root).flatMap((folder) => {
    const path = resolve(root, folder, "package.json");
    if (!existsSync(path)) return [];
    const command = JSON.parse(readFileSync(path, "utf8")).scripts?.generate as string | undefined;
    return command ? [{ folder, command }] : [];
  });
}

/** Path -> hash of every file of a package, except what is installed or built. */
function snapshot(folder: string, hashes = new Map<string, string>()): Map<string, string> {
  for (const entry of readdirSync(resolve(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name !== "node_modules" && entry.name !== "dist") snapshot(path, hashes);
    } else if (entry.isFile()) {
      const hash = createHash("sha256").update(readFileSync(resolve(root, path)));
      hashes.set(path, hash.digest("hex"));
    }
  }
  return hashes;
}

const packages = packagesWithGenerator();
let problems = 0;
for (const { folder, command } of packages) {
  const before = snapshot(folder);
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
  const after = snapshot(folder);
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  for (const path of paths.filter((path) => before.get(path) !== after.get(path))) {
    console.error(`${path} was not what \`${command}\` makes; it is now: look at it and commit it`);
    problems++;
  }
}
console.log(`generated: ${packages.length} generators, ${problems} problems`);
process.exitCode = problems > 0 ? 1 : 0;
