/**
 * `npm run build:espruino`: writes the files of dist/espruino and prints the size of each part: for
 * each packet version and for any, over WebSockets, over Wi-Fi that the file joins and over a UART,
 * with and without push, and with push and rekey. Exit code 1 if Espruino could not run one of
 * them.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { checkDialect } from "./built-file-dialect.ts";
import { GUARDED } from "./espruino.ts";
import { BOARD_FILES } from "./files.ts";

const folder = new URL("../dist/espruino/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const { name, build } of BOARD_FILES) {
  const { code, stored, parts, late } = build();
  for (const { rule, column, text } of checkDialect(code, [...GUARDED, ...late])) {
    console.error(`${name}: ${rule} at ${column}: ${text}`);
    process.exitCode = 1;
  }
  const target = new URL(name, folder);
  writeFileSync(target, stored, "latin1");
  console.log(`${fileURLToPath(target)}: ${stored.length} bytes, of which`);
  for (const { path, bytes } of [...parts].sort((a, b) => b.bytes - a.bytes)) {
    if (bytes > 0) console.log(`${String(bytes).padStart(7)}  ${basename(path)}`);
  }
}
