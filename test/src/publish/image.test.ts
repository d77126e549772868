/**
 * The container image as far as we define it: the Containerfile's steps, run in folders instead of
 * its stages, and the relay started from the result.
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, matchesGlob, relative } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Running } from "../cli/processes.ts";
import { run, WORKSPACE } from "./packages.ts";

/** Two installs and a start, beside other tests. */
const BUILD_MS = 300_000;
/**
 * Measured: 48,220 (du -sk), of which the API's viewers are 3,000, @noble/curves 1,700, NATS's
 * client 1,300, and the console's files for boards 750.
 */
const IMAGE_KIB = 49_500;

// On a disk if there is one: `npm test` keeps other temporary files in memory, and these are 500
// MB.
const folder = mkdtempSync(
  join(existsSync("/var/tmp") ? "/var/tmp" : tmpdir(), "blindrelay-image-"),
);
const image = join(folder, "install");
let server: Running;

/** Its instructions, one per line. */
const instructions = readFileSync(join(WORKSPACE, "relay-server/deploy/Containerfile"), "utf8")
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => line.split(" ") as [string, ...string[]]);

const ignored = readFileSync(
  join(WORKSPACE, "relay-server/deploy/Containerfile.dockerignore"),
  "utf8",
)
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

const copy = (from: string, to: string, leftOut: readonly string[]): void =>
  cpSync(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !leftOut.some((glob) => matchesGlob(relative(WORKSPACE, path), glob)),
  });

/** A stage, up to the last one, which only wraps the result of `install`. */
const perform = async (stage: string, [instruction, ...args]: string[]): Promise<void> => {
  if (instruction === "RUN") {
    await run("bash", ["-c", args.join(" ")], stage, { ...process.env, CI: "true" });
  } else if (instruction === "COPY") {
    const other = args[0]?.startsWith("--from=") ? args.shift()?.slice(7) : undefined;
    const to = args.pop() as string;
    for (const path of args) {
      // Folders are copied to a name, files into a folder, both as in Docker.
      const target = to.endsWith("/") ? join(stage, to, basename(path)) : join(stage, to);
      if (other !== undefined) copy(join(folder, other, path.replace(/^\/app\//, "")), target, []);
      else copy(join(WORKSPACE, path), target, ignored);
    }
  } else expect(instruction).toBe("WORKDIR");
};

beforeAll(async () => {
  let stage = "";
  for (const [instruction, ...args] of instructions) {
    if (instruction === "FROM") {
      const [base, , name] = args as [string, string, string?];
      if (name === undefined) break;
      stage = join(folder, name);
      if (existsSync(join(folder, base))) copy(join(folder, base), stage, []);
      else mkdirSync(stage);
    } else await perform(stage, [instruction, ...args]);
  }
  const data = ["--data", join(folder, "data")];
  const main = join(image, "relay-server/src/main.ts");
  const who = ["--username", "ada", "--password-stdin", "--no-totp"];
  const made = new Running(main, ["init", ...data, ...who], {}, "a long password of one's own");
  expect(await made.ended).toMatchObject({ code: 0 });
  server = new Running(main, ["start", ...data, "--port", "0", "--metrics-port", "0"], {}, "");
}, BUILD_MS);

afterAll(async () => {
  await server?.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

it("runs the relay, with its pages and their licences", async () => {
  const { url } = await server.json<{ url: string }>();
  for (const path of [
    "api/docs/swagger-ui-bundle.js",
    "api/docs/swagger-ui.css",
    "api/redoc/redoc.standalone.js",
    "console",
    "console/console.css",
    "console/console.js",
    "console/board.js",
    "console/blindrelay-wifi-push-2.bin",
  ]) {
    expect([path, (await fetch(`${url}/${path}`)).status]).toEqual([path, 200]);
  }
  const notices = readFileSync(join(image, "relay-server/dist/viewers/NOTICES.md"), "utf8");
  for (const licence of ["Apache License", "Rebilly"]) expect(notices).toContain(licence);
});

it("contains no second Node, no packages of the viewers, and little else", () => {
  const installed = readdirSync(join(image, "node_modules/.pnpm"));
  expect(
    installed.filter((name) => /^(node-(bin-|linux|darwin)|redoc|react|typescript)/.test(name)),
  ).toEqual([]);
  const [kib] = execFileSync("du", ["-sk", dirname(join(image, "package.json"))], {
    encoding: "utf8",
  }).split("\t");
  expect(Number(kib)).toBeLessThan(IMAGE_KIB);
});

it("contains no tests of ours, nor anything that only they use", () => {
  const files = readdirSync(image, { recursive: true, encoding: "utf8" });
  const ours = files.filter((path) => !/(^|\/)node_modules\//.test(path));
  expect(ours).toContain("relay-server/src/main.ts");
  expect(ours.filter((path) => /\.test\.[jt]s$|\/(testing|vectors)\//.test(path))).toEqual([]);
});
