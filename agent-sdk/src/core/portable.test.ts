import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { checkDialect } from "../../build/built-file-dialect.ts";
import { bundle } from "../../build/bundle.ts";

/** Looked for before it is used; the boards' file has natives in its place. */
const OPTIONAL = ["Uint8Array.fromBase64"];

it.each([
  "agent-core.ts",
  "bootcount.ts",
  "streams.ts",
  "../serial/links.ts",
  "../serial/espruino.ts",
])("%s and all it loads share one scope and stay within what Espruino runs", (entry) => {
  const { code } = bundle(fileURLToPath(new URL(entry, import.meta.url)));
  expect(checkDialect(code, OPTIONAL)).toEqual([]);
});
