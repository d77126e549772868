/** Shares jobs between two processes of a script, which prints a line of JSON for each job. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** What both have printed; `jobs`: their arguments. Rejects with what one complains of. */
export const inTwoProcesses = async <Line>(
  script: URL,
  jobs: readonly string[],
): Promise<Line[]> => {
  const run = async (half: number): Promise<Line[]> => {
    const words = [fileURLToPath(script), ...jobs.filter((_job, i) => i % 2 === half)];
    const options = { maxBuffer: Number.POSITIVE_INFINITY };
    const { stdout } = await promisify(execFile)(process.execPath, words, options);
    const lines = stdout.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line));
  };
  return (await Promise.all([run(0), run(1)])).flat();
};
