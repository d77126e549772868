/** The checkout's commands on the PATH, as other programs start them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";

const LINK = resolve(import.meta.dirname, "link.mjs");

const place = (): string => {
  const folder = join(mkdtempSync(join(tmpdir(), "blindrelay-link-")), "it's a bin");
  onTestFinished(() => rmSync(join(folder, ".."), { recursive: true }));
  return folder;
};

const link = (...args: string[]) =>
  spawnSync(process.execPath, [LINK, ...args], { encoding: "utf8" });

it("works with exec and timeout, which ignore aliases, from any folder", () => {
  const folder = place();
  const linked = link(folder);
  expect([linked.status, linked.stderr]).toEqual([0, ""]);
  expect(linked.stdout).toContain("export PATH=");
  const script = "exec timeout 120 blindrelay --version";
  const { status, stdout } = spawnSync("sh", ["-c", script], {
    encoding: "utf8",
    cwd: tmpdir(),
    env: { PATH: `${folder}:${process.env.PATH}` },
  });
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
  expect(readdirSync(folder).sort()).toEqual(["blindrelay", "blindrelay-server", "blindrelay-sim"]);
  expect(link(folder).status).toBe(0); // again
  expect(link(folder, "--remove").status).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

it("does not overwrite a file that it did not make", () => {
  const folder = place();
  link(folder);
  const theirs = join(folder, "blindrelay-server");
  writeFileSync(theirs, "#!/bin/sh\n");
  for (const args of [[folder], [folder, "--remove"]]) {
    const refused = link(...args);
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining(theirs)]);
  }
  expect(readFileSync(theirs, "utf8")).toBe("#!/bin/sh\n");
  expect(readdirSync(folder)).toHaveLength(3);
});
