/**
 * Makes program-storage.generated.ts: `agent.storage` for Espruino as a text that `toModule` adds
 * to the programs that use it, because a board's own file has no room for it.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { bundle } from "./bundle.ts";

const sources = resolve(import.meta.dirname, "../src/espruino");

const { code } = bundle(resolve(sources, "program-storage.ts"), {
  natives: [resolve(sources, "checksum.ts")],
  lazy: [],
  stored: null,
  inline: true,
  global: false,
  keep: ["storage", "get", "set", "remove"],
  ours: ["port", "number", "encoded", "slot"],
});

writeFileSync(
  resolve(import.meta.dirname, "program-storage.generated.ts"),
  `/** Made by program-storage.ts. */\nexport const MAKE_STORAGE = ${JSON.stringify(code.trim())};\n`,
);
