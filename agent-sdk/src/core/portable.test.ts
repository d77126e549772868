import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { checkDialect } from "../../build/built-file-dialect.ts";
import { bundle } from "../../build/bundle.ts";

/** Checked for before use; the file for boards has native functions instead. */
const OPTIONAL = ["Uint8Array.fromBase64"];

it.each([
  "agent-core.ts",
  "bootcount.ts",
  "give-rekey.ts",
  "streams.ts",
  "../serial/links.ts",
  "../serial/espruino.ts",
])("%s and all its imports share one scope and use only what Espruino runs", (entry) => {
  const { code } = bundle(fileURLToPath(new URL(entry, import.meta.url)));
  expect(checkDialect(code, OPTIONAL)).toEqual([]);
});
