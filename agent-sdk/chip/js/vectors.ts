/** Runs on the chip: every vector, with the suite of the Moddable build. */
import type { VectorFiles } from "@blindrelay/protocol/testing";
import files from "vector-files";
import { moddableSuite } from "../../src/moddable/suite.ts";
import { crypt } from "./ports.ts";
import { checkVectors } from "./vector-checks.ts";

const suite = moddableSuite(crypt);
for (const field of Object.keys(files) as (keyof VectorFiles)[]) {
  const before = chip.figure(0);
  const failures = checkVectors(suite, { [field]: files[field] });
  chip.print(JSON.stringify({ field, failures, instructions: chip.figure(0) - before }));
}
chip.print(
  JSON.stringify({
    heap: chip.figure(1),
    cStack: chip.figure(3),
    jsStack: chip.figure(4),
    aliases: chip.figure(5),
  }),
);
chip.exit(0);
