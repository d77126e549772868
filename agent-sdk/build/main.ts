/**
 * `npm run build:espruino`: makes dist/espruino/blindrelay.js and blindrelay-serial.js and prints
 * what they hold. Exit code 1 where one would not run on Espruino.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkDialect } from "./dialect.ts";
import { buildEspruino, buildEspruinoSerial, GUARDED } from "./espruino.ts";

const folder = new URL("../dist/espruino/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, { code, modules }] of [
  ["blindrelay.js", buildEspruino()],
  ["blindrelay-serial.js", buildEspruinoSerial()],
] as const) {
  for (const { rule, column, text } of checkDialect(code, GUARDED)) {
    console.error(`${name}: ${rule} at ${column}: ${text}`);
    process.exitCode = 1;
  }
  const target = new URL(name, folder);
  writeFileSync(target, code);
  console.log(`${fileURLToPath(target)}: ${code.length} bytes of ${modules.length} modules`);
}
