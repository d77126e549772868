/**
 * Copies the files of the API's two viewers to `dist/viewers`, what the published package and the
 * container image serve, with their licences in `NOTICES.md` beside them.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COPIES, installedFolder, VIEWERS, type Viewer } from "../src/http/describe/viewers.ts";

rmSync(COPIES, { recursive: true, force: true });
const notices = ["# Other people's code in this folder"];
for (const viewer of Object.keys(VIEWERS) as Viewer[]) {
  const { files, licences } = VIEWERS[viewer];
  const read = (file: string): string => readFileSync(join(installedFolder(viewer), file), "utf8");
  for (const file of files) {
    cpSync(join(installedFolder(viewer), file), join(COPIES, viewer, file));
  }
  const { version } = JSON.parse(read("package.json"));
  notices.push(`## ${viewer} ${version}`, ...licences.map((file) => read(file).trim()));
}
writeFileSync(join(COPIES, "NOTICES.md"), `${notices.join("\n\n")}\n`);
