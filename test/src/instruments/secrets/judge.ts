/** Searches all output for every secret that was created, here and in spawned processes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { leaksIn } from "./leaks.ts";
import { processWitness } from "./witness.ts";

/** The leaks since the last call; each is reported once. */
export const takeLeaks = (folder: string): string[] => {
  const witness = processWitness();
  const texts = [witness.said.join("")];
  witness.said = [];
  const secrets = new Set(witness.secrets);
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), "utf8");
    if (name.endsWith(".said")) texts.push(text);
    if (!name.endsWith(".made")) continue;
    // A killed process may leave half a line.
    for (const line of text.split("\n").slice(0, -1)) secrets.add(JSON.parse(line) as string);
  }
  return texts.flatMap((text) => leaksIn(text, secrets));
};
