import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SDK_VERSION } from "./version.ts";

const root = import.meta.dirname;
const { version } = JSON.parse(readFileSync(join(root, "../package.json"), "utf8"));

it("is that of the package, and no door has one of its own", () => {
  expect(SDK_VERSION).toBe(version);
  const spelling = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .filter((path) => readFileSync(join(root, path), "utf8").includes(`"${version}"`));
  expect(spelling).toEqual(["version.ts"]);
});
