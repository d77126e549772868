/**
 * Plants a bug in this process: `node --import preload.ts` with PLANTED naming one of plants.ts.
 * Ends the process if a text to be replaced does not occur exactly once, or the file is never
 * loaded.
 */
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { FOR_THE_SEARCH, PLANTS } from "./plants.ts";

const name = process.env.PLANTED ?? "";
const plant = PLANTS[name] ?? FOR_THE_SEARCH[name];
if (plant === undefined) throw new Error(`PLANTED: there is no "${name}" in plants.ts`);

const url = pathToFileURL(resolve(import.meta.dirname, "../../../..", plant.file)).href;
let isPlanted = false;

registerHooks({
  load(at, context, next) {
    const loaded = next(at, context);
    if (at !== url) return loaded;
    let source = String(loaded.source);
    for (const { from, to } of plant.edits) {
      if (source.split(from).length !== 2) {
        throw new Error(
          `${plant.file} does not contain this exactly once, so "${name}" is not planted: ${from}`,
        );
      }
      source = source.replace(from, () => to);
    }
    isPlanted = true;
    return { ...loaded, source };
  },
});

process.on("exit", () => {
  if (isPlanted) return;
  process.stderr.write(`${plant.file} was not loaded: "${name}" was not planted\n`);
  process.exitCode = 70;
});
