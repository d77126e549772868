/** electrode-io/electrode-ota-server#57: "1.0" and "v1.5.0" broke each later check. */
import { expect, it } from "vitest";
import { releaseVersion, version } from "./version-flags.ts";

it.each(["v1.4.0", "1.4", "1.0", "01.4.0", "1.4.0 ", ""])("%j is no version", (text) => {
  expect(() => version(text)).toThrow("A version by SemVer");
  expect(() => releaseVersion(text)).toThrow("A version by SemVer");
});

it("build metadata is for what runs, not for a release", () => {
  expect(version("1.5.0+build.7")).toBe("1.5.0+build.7");
  expect(() => releaseVersion("1.5.0+build.7")).toThrow("no build metadata");
  expect(releaseVersion("1.5.0-rc.1")).toBe("1.5.0-rc.1");
});
