import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { connect } from "./index.ts";

const load = (condition: string): string =>
  execFileSync(
    process.execPath,
    [
      ...["--disable-warning=ExperimentalWarning", `--conditions=${condition}`],
      ...["--input-type=module", "-e"],
      'import { connect } from "@blindrelay/client-sdk"; import * as edge from "@blindrelay/client-sdk/EDGE"; console.log(connect === edge.connect)'.replace(
        "EDGE",
        condition,
      ),
    ],
    { cwd: import.meta.dirname, encoding: "utf8" },
  ).trim();

it("the package's main entry has the connect of the runtime that loads it", () => {
  expect([load("node"), load("browser"), typeof connect]).toEqual(["true", "true", "function"]);
});
