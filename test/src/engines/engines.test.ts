/**
 * A program with both SDKs where its author did not get it from npm as it is: in one file of a
 * bundler, and in an engine whose node:crypto has other ciphers than Node's. By hand also with the
 * engine itself: `bun test/src/engines/talk.js`, with the variables below.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, type Format } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Added, type Environment, House, PASSWORD, Running } from "../cli/processes.ts";

const TALK = join(import.meta.dirname, "talk.js");
const WITHOUT_CIPHERS = join(import.meta.dirname, "without-ciphers.mjs");
const README = resolve(import.meta.dirname, "../../../client-sdk/README.md");

const house = new House();
let account = "";

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, PASSWORD);
  account = (await house.cli(["auth", "token"])).stdout.trim();
});
afterAll(() => house.close());

const environment = async (id: string, version = "1"): Promise<Environment> => {
  const args = ["agent", "add", id, "--id", id, "--packet-version", version, "--json", "--env"];
  const added = JSON.parse((await house.cli(args)).stdout) as Added;
  return {
    BLINDRELAY_URL: house.url,
    BLINDRELAY_ACCOUNT_TOKEN: account,
    BLINDRELAY_AGENT_ID: id,
    BLINDRELAY_RELAY_TOKEN: added.api_token,
    BLINDRELAY_AGENT_TOKEN: added.agent_token,
    BLINDRELAY_PACKET_VERSION: version,
    BLINDRELAY_STATE_DIR: house.path(`state-${id}`),
  };
};

const ANSWERED = { code: 0, stdout: '{"percent":40}\n', stderr: "" };

// As in oven-sh/bun#8072.
it.each(["1", "2"])(
  "packet version %s works without its cipher in node:crypto",
  async (version) => {
    const env = await environment(`bare-${version}`, version);
    const node = { NODE_OPTIONS: `--import ${WITHOUT_CIPHERS}` };
    expect(await new Running(TALK, [], { ...env, ...node }).ended).toEqual(ANSWERED);
  },
);

/** As client-sdk/README.md says for ES modules, and with no more than that for CommonJS. */
const bannerOf = (format: Format): Record<string, string> => {
  if (format === "cjs") return {};
  const [, banner = ""] = /--banner:js='([^']+)'/.exec(readFileSync(README, "utf8")) ?? [];
  expect(banner).not.toBe("");
  return { js: banner };
};

// As in chrischall/ofw-mcp#15.
it.each([
  ["esm", "mjs"],
  ["cjs", "cjs"],
] as const)("one file as %s has all that it needs", async (format, ending) => {
  const outfile = house.path(`talk.${ending}`);
  await build({
    entryPoints: [TALK],
    bundle: true,
    platform: "node",
    format,
    outfile,
    banner: bannerOf(format),
    logLevel: "error",
  });
  const env = await environment(`one-${format}`);
  expect(await new Running(outfile, [], env).ended).toEqual(ANSWERED);
});
