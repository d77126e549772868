/**
 * `npm run build:espruino`: makes dist/espruino/blindrelay.js and prints what it holds. Exit code 1
 * where the file would not run on Espruino.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkDialect } from "./dialect.ts";
import { buildEspruino, GUARDED } from "./espruino.ts";

const target = new URL("../dist/espruino/blindrelay.js", import.meta.url);
const { code, modules } = buildEspruino();
const findings = checkDialect(code, GUARDED);
for (const { rule, column, text } of findings) console.error(`${rule} at ${column}: ${text}`);
mkdirSync(new URL(".", target), { recursive: true });
writeFileSync(target, code);
console.log(`${fileURLToPath(target)}: ${code.length} bytes of ${modules.length} modules`);
process.exitCode = findings.length > 0 ? 1 : 0;
