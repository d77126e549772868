/**
 * A board's configuration in a folder, for a board that is written in another way. The folder does
 * not know what its board contains: in place of a boot count it carries a marker, which the agent's
 * start turns into one.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { bootCountMarker } from "@blindrelay/agent-sdk";
import { type BoardConfig, configFile } from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { makeWholeFile, writing } from "../base/whole-file.ts";

/**
 * Writes them as files (0600) into a folder (0700) that contains none of them yet. `target`: on
 * Moddable a build writes the boot count. Throws a Failure: device if the folder is a board's
 * already, usage if it cannot be written.
 */
export const provisionFolder = (
  folder: string,
  config: BoardConfig,
  target: "espruino" | "moddable",
): void => {
  const marker = bootCountMarker(nodeSuite(), config.agent_token);
  const files = [...(target === "espruino" ? [marker] : []), configFile(config)];
  const made: string[] = [];
  writing(folder, () => makeFolder(folder));
  try {
    for (const { name, content } of files) {
      const path = join(folder, name);
      makeWholeFile(path, content);
      made.push(path);
    }
  } catch (error) {
    for (const path of made) rmSync(path, { force: true });
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      throw new Failure(
        "device",
        `${folder} already contains a board's files: specify an empty folder`,
        error,
      );
    }
    throw new Failure("usage", `cannot write ${folder}: ${(error as Error).message}`, error);
  }
};
