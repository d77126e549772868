/**
 * `npm run build:espruino`: writes the files of dist/espruino and prints the size of each part: for
 * each packet version and for any, over WebSockets, over Wi-Fi that the file joins and over a UART,
 * with and without push. Exit code 1 if Espruino could not run one of them.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { checkDialect } from "./built-file-dialect.ts";
import {
  buildEspruino,
  buildEspruinoSerial,
  buildEspruinoWifi,
  GUARDED,
  VARIANTS,
} from "./espruino.ts";

const folder = new URL("../dist/espruino/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const variant of VARIANTS) {
  for (const [name, { code, stored, parts, late }] of [
    [`blindrelay-${variant}.bin`, buildEspruino(variant)],
    [`blindrelay-push-${variant}.bin`, buildEspruino(variant, true)],
    [`blindrelay-wifi-${variant}.bin`, buildEspruinoWifi(variant)],
    [`blindrelay-wifi-push-${variant}.bin`, buildEspruinoWifi(variant, true)],
    [`blindrelay-serial-${variant}.bin`, buildEspruinoSerial(variant)],
    [`blindrelay-serial-push-${variant}.bin`, buildEspruinoSerial(variant, true)],
  ] as const) {
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
}
