/**
 * The published packages work without the workspace: each is packed, unpacked into an empty folder,
 * and used from there as its README describes.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { checkPackage, createPackageFromTarballData, type Problem } from "@arethetypeswrong/core";
import { findXs } from "@blindrelay/agent-sdk/engines";
import { HAS_CHROMIUM } from "@blindrelay/relay-server/testing";
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import { BoardCable } from "@blindrelay/tools/testing/repl/pty";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, Running } from "../cli/processes.ts";
import { followPage } from "../recipes/follow.ts";
import { useApp } from "./browser-app.ts";
import {
  type Name,
  nodeOfMachine,
  oldestNode,
  PACKAGES,
  Packages,
  run,
  WORKSPACE,
} from "./packages.ts";

/** Six builds and two installations, many times what they need alone. */
const PACK_MS = 900_000;
/** Files of a user of the packages. */
const PROGRAMS = join(import.meta.dirname, "consumer");
const PASSWORD = "a long password of one's own";

const packages = new Packages();
/** Runs the commands; the workspace's newer Node runs them in all other tests. */
const oldest = oldestNode();
const at = (...parts: string[]): string => join(packages.consumer, ...parts);
const started: Running[] = [];
let relay = "";

const start = (
  name: "tools" | "relay-server" | "simulator",
  args: string[],
  input = "",
): Running => {
  const settings = { BLINDRELAY_CONFIG_DIR: at("config") };
  const running = new Running(packages.command(name), args, settings, input, oldest);
  started.push(running);
  return running;
};

const blindrelay = async (...args: string[]): Promise<Ended> => {
  const ended = await start("tools", args, `${PASSWORD}\n`).ended;
  expect(ended).toMatchObject({ code: 0 });
  return ended;
};

const readJson = (...path: string[]) => JSON.parse(readFileSync(at(...path), "utf8"));

beforeAll(async () => {
  await packages.make();
  for (const folder of [packages.consumer, packages.sdks]) {
    for (const file of readdirSync(PROGRAMS))
      copyFileSync(join(PROGRAMS, file), join(folder, file));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  }
  const data = ["--data", at("relay")];
  const who = ["--username", "ada", "--password-stdin", "--no-totp"];
  expect(await start("relay-server", ["init", ...data, ...who], PASSWORD).ended).toMatchObject({
    code: 0,
  });
  const ports = ["--port", "0", "--metrics-port", "0"];
  const server = start("relay-server", ["start", ...data, ...ports]);
  relay = (await server.json<{ url: string }>()).url;
  await blindrelay("login", "--url", relay, "--username", "ada", "--password-stdin");
}, PACK_MS);

afterAll(async () => {
  await Promise.all(started.map((process) => process.stop("SIGKILL")));
  rmSync(packages.folder, { recursive: true, force: true });
});

/** Every path in a part of package.json. */
const pathsIn = (value: unknown): string[] =>
  typeof value === "string" ? [value] : Object.values(value ?? {}).flatMap(pathsIn);

/** Read as files, or by another engine: boards' artefacts, the viewers, device programs. */
const NOT_IMPORTED =
  /^(dist\/((espruino|moddable|moddable-modules|viewers|build|xs)\/)|(moddable|examples|library)\/)/;

/** Modules that run as their own processes. */
const PROCESSES =
  /^dist\/(live\/fleet-process|run\/seed-process|search\/search-process|virtual\/watchdog-thread)\.js$/;

/** A module that contains only types: `export {}` between comments. */
const TYPES_ONLY = /^(\s|\/\*[\s\S]*?\*\/|\/\/.*\n)*export \{\};\n\/\/# sourceMappingURL=.*$/;

/** Everything that modules load by a path, with themselves. */
const loadedFrom = (files: string[]): Set<string> => {
  const loaded = new Set<string>();
  for (const file of files) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    const code = readFileSync(file, "utf8");
    for (const [, path] of code.matchAll(/["'](\.{1,2}\/[^"'\n]+\.js)["']/g)) {
      const target = resolve(file, "..", path as string);
      if (existsSync(target)) files.push(target);
    }
  }
  return loaded;
};

const readTarball = async (name: Name): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await readFile(packages.tarball(name)));

/**
 * The packages are ES modules only, with `exports`: these kinds of resolution do not apply to them.
 */
const isOfCommonJs = (problem: Problem): boolean =>
  "resolutionKind" in problem && /^node(10|16-cjs)$/.test(problem.resolutionKind);

describe.each(PACKAGES)("the tarball of %s", (name) => {
  it("contains what its package.json promises", () => {
    const { bin, exports } = packages.manifest(name);
    const paths = [...pathsIn(bin), ...pathsIn(exports)];
    const missing = paths.filter((path) => !existsSync(packages.path(name, path.replace("*", ""))));
    expect([paths.length > 0, missing]).toEqual([true, []]);
  });

  it("has a README, a changelog and a licence, and no tests", async () => {
    const files = await packages.files(name);
    for (const file of ["README.md", "CHANGELOG.md", "LICENSE"]) expect(files).toContain(file);
    const wanted =
      /^((dist|src|vectors|moddable|examples|library|systemd|deploy)\/.*|[A-Z]+(\.md)?|package\.json)$/;
    const unwanted = /\.test\.|double|fake-relay|tsbuildinfo|\.env|\.log$/;
    const strange = files.filter((file) => !wanted.test(file) || unwanted.test(file));
    expect(strange).toEqual([]);
  });

  it("has no module that nothing in it loads", async () => {
    const { bin, exports } = packages.manifest(name);
    const modules = (await packages.files(name)).filter((path) => path.endsWith(".js"));
    const named = [...pathsIn(bin), ...pathsIn(exports)].filter((path) => /\.[cm]?js$/.test(path));
    const doors = [...named, ...modules.filter((path) => PROCESSES.test(path))];
    const loaded = loadedFrom(doors.map((path) => packages.path(name, path)));
    const idle = modules.filter((path) => !loaded.has(packages.path(name, path)));
    const isOfTypes = (path: string) =>
      TYPES_ONLY.test(readFileSync(packages.path(name, path), "utf8"));
    expect(idle.filter((path) => !NOT_IMPORTED.test(path) && !isOfTypes(path))).toEqual([]);
  });

  it("has source maps from its modules to its sources", async () => {
    const maps = (await packages.files(name)).filter((path) => /^dist\/.*\.map$/.test(path));
    const sources = maps.flatMap((path): string[] => {
      const map = JSON.parse(readFileSync(packages.path(name, path), "utf8"));
      return map.sources.map((source: string) => resolve(packages.path(name, path), "..", source));
    });
    expect([sources.length > 0, sources.filter((path) => !existsSync(path))]).toEqual([true, []]);
  });

  it("has beside it a bill of all that it needs or contains, and of nothing else", async () => {
    const { version } = packages.manifest(name);
    const { of, listed } = packages.materials(name);
    const { always, sometimes } = packages.needed(name);
    const notices = (await packages.files(name)).filter((path) => path.endsWith("/NOTICES.md"));
    const contained = notices.flatMap((path) =>
      [...readFileSync(packages.path(name, path), "utf8").matchAll(/^## (\S+) (\d\S*)$/gm)].map(
        ([, id, of]) => `${id}@${of}`,
      ),
    );
    expect(of).toBe(`@blindrelay/${name}@${version}`);
    const all = new Set([...always, ...contained]);
    expect([...all].filter((each) => !listed.has(each))).toEqual([]);
    const more = [...listed].filter((each) => !all.has(each));
    expect(more.filter((each) => !sometimes.has(each.replace(/@[^@]*$/, "")))).toEqual([]);
    if (name === "relay-server") expect(contained.join(" ")).toMatch(/preact@.* redoc@/);
  });

  it("satisfies publint", async () => {
    const tarball = await readTarball(name);
    const { messages } = await publint({ pack: { tarball: tarball.buffer }, strict: true });
    expect(messages).toEqual([]);
  });

  it("has types that resolve like its modules, according to attw", async () => {
    const { exports } = packages.manifest(name);
    if (!("." in (exports as object))) return; // a program only
    const checked = await checkPackage(createPackageFromTarballData(await readTarball(name)));
    expect(checked.types).not.toBe(false);
    const problems = "problems" in checked ? checked.problems : [];
    expect(problems.filter((problem) => !isOfCommonJs(problem))).toEqual([]);
  });

  it("names its repository and where to report bugs", () => {
    const manifest = packages.manifest(name);
    const url = "https://github.com/blindrelay/blindrelay";
    expect(manifest).toMatchObject({
      license: "MIT",
      repository: { type: "git", url: `git+${url}.git`, directory: name },
      homepage: `${url}/tree/main/${name}#readme`,
      bugs: { url: `${url}/issues` },
      keywords: expect.arrayContaining(["iot"]),
    });
  });
});

it.skipIf(oldest === process.execPath)("uses the oldest Node that the commands name", () => {
  for (const name of ["tools", "relay-server", "simulator"] as const) {
    expect(packages.manifest(name).engines.node).toBe(`>=${versionOf(oldest).replace(/\.0$/, "")}`);
  }
});

describe("the release (.github/workflows/release.yml)", () => {
  const workflow = readFileSync(join(WORKSPACE, ".github/workflows/release.yml"), "utf8");
  const stepOf = (name: string): string => {
    const step = new RegExp(`- name: ${name}.*\n +run: \\|\n((?: {10}.*\n)+)`).exec(workflow);
    expect([name, step]).not.toEqual([name, null]);
    return (step?.[1] ?? "").replaceAll(/^ {10}/gm, "");
  };

  it("names the line that installs what was packed, and packs nothing else", () => {
    const tarballs = PACKAGES.map((name) => packages.tarball(name));
    expect(packages.installLine.split(" ").sort()).toEqual(["npm", "install", ...tarballs].sort());
    const bills = tarballs.map((path) => path.replace(/tgz$/, "cdx.json"));
    const files = readdirSync(packages.packs).map((file) => join(packages.packs, file));
    expect(files.sort()).toEqual([...tarballs, ...bills].sort());
  });

  it("packs as `npm run pack` does", () => {
    expect(stepOf("Pack")).toContain('node scripts/pack.ts "$RUNNER_TEMP/packs"');
  });

  it("would publish every package: the steps run as written, up to the upload itself", async () => {
    // No package is there yet. npm looks, also in a rehearsal.
    const registry = createServer((_, response) => response.writeHead(404).end("{}"));
    await once(registry.listen(0, "127.0.0.1"), "listening");
    const { port } = registry.address() as AddressInfo;
    const bin = join(packages.folder, "rehearsal");
    mkdirSync(bin);
    // What only the upload needs is left out: npm's newest version, and who signs.
    const script = `#!/bin/sh
shift 2
for word; do shift; [ "$word" = --provenance ] || set -- "$@" "$word"; done
exec npm "$@" --dry-run --json --registry http://127.0.0.1:${port}\n`;
    writeFileSync(join(bin, "npx"), script, { mode: 0o755 });
    const manifest = readFileSync(packages.path("protocol", "package.json"), "utf8");
    const { version } = JSON.parse(manifest) as { version: string };
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      HOME: packages.folder,
      RUNNER_TEMP: packages.folder,
      GITHUB_REF_NAME: `v${version}`,
    };
    try {
      await run("bash", ["-ec", stepOf("The tag is")], packages.workspace, env);
      const said = await run("bash", ["-ec", stepOf("Publish")], packages.workspace, env);
      const published = [...said.matchAll(/"id": "@blindrelay\/([\w-]+)@(.*)"/g)];
      expect(published.map(([, name]) => name).sort()).toEqual([...PACKAGES].sort());
      expect(new Set(published.map(([, , each]) => each))).toEqual(new Set([version]));
      const wrong = { ...env, GITHUB_REF_NAME: "v0.0.0" };
      const tag = run("bash", ["-ec", stepOf("The tag is")], packages.workspace, wrong);
      await expect(tag).rejects.toThrow("the tag is v0.0.0");
    } finally {
      registry.close();
    }
  });
});

it.each([
  ["tools", "blindrelay"],
  ["relay-server", "blindrelay-server"],
  ["simulator", "blindrelay-sim"],
] as const)("the command of %s explains itself", async (name, command) => {
  const { code, stdout } = await start(name, ["--help"]).ended;
  expect([code, stdout]).toEqual([0, expect.stringContaining(`Usage: ${command} `)]);
});

const versionOf = (node: string): string =>
  `${spawnSync(node, ["--version"]).stdout}`.trim().slice(1);

/** The machine's own Node, which may be as old as 20; the workspace's if there is none. */
const node = nodeOfMachine() ?? process.execPath;
const version = versionOf(node);

it(`an agent and a client in a few lines talk, on Node ${version}`, async () => {
  await blindrelay("agent", "add", "Pump", "--id", "pump-7");
  const exported = JSON.parse((await blindrelay("agent", "export", "pump-7", "--json")).stdout);
  const env = {
    ...process.env,
    BLINDRELAY_URL: relay,
    BLINDRELAY_AGENT_ID: "pump-7",
    BLINDRELAY_RELAY_TOKEN: exported.api_token,
    BLINDRELAY_AGENT_TOKEN: exported.agent_token,
    BLINDRELAY_ACCOUNT_TOKEN: readJson("config", "default.json").account_token,
    BLINDRELAY_STATE_DIR: at("state"),
  };
  const agent = spawn(node, [join(packages.sdks, "agent.js")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    expect(await once(createInterface(agent.stdout), "line")).toEqual(["online"]);
    expect(await run(node, [join(packages.sdks, "client.js")], packages.sdks, env)).toBe(
      '{"percent":40}\n',
    );
  } finally {
    agent.kill();
  }
});

const isOld = version.localeCompare(versionOf(oldest), "en", { numeric: true }) < 0;
const why = isOld ? `on Node ${version}` : `on an older Node (skipped: it is ${version})`;

it.skipIf(!isOld)(`${why} the commands name the version they need`, () => {
  for (const name of ["tools", "relay-server", "simulator"] as const) {
    const { status, stderr } = spawnSync(node, [packages.command(name), "--help"]);
    const wanted = packages.manifest(name).engines.node.replace(">=", "");
    expect([status, `${stderr}`]).toEqual([2, expect.stringContaining(`needs Node ${wanted} or`)]);
  }
});

it("flash --target moddable writes a whole project", async () => {
  await blindrelay("provision", "--id", "lamp-1", "--out", at("lamp-1"));
  await blindrelay(
    ...["flash", "--target", "moddable", "--program", at("program.js")],
    ...["--config", at("lamp-1"), "--out", at("project")],
  );
  const modules = Object.values<string>(readJson("project/blindrelay/manifest.json").modules);
  const own = modules.filter((path) => path.startsWith("./"));
  for (const path of own) expect(existsSync(at("project/blindrelay", `${path}.js`))).toBe(true);
  expect(own).toHaveLength(7);
  expect(readJson("project/manifest.json").include).toContain("./blindrelay/manifest.json");
  expect(readJson("project/agent.json").config.agent_id).toBe("lamp-1");
  expect(existsSync(at("project/main.js"))).toBe(true);
});

it("flash --dry-run takes the SDK and the check of programs from the package", async () => {
  const double = new EspruinoDouble({});
  const cable = new BoardCable(double, at("tty"));
  try {
    await cable.plug();
    const port = [at("tty"), "--baud", "921600"];
    await blindrelay("provision", ...port, "--id", "lamp-2");
    const flags = ["flash", ...port, "--dry-run", "--json", "--program"];
    const tried = await blindrelay(...flags, at("program.js"));
    const sdk = readFileSync(packages.path("agent-sdk", "dist/espruino/blindrelay-push-2.bin"));
    expect(JSON.parse(tried.stdout)).toMatchObject({
      dry_run: true,
      files: [{ name: "blindrelay", bytes: sdk.length }, { name: "program" }],
    });

    writeFileSync(at("wrong.js"), "export default async (agent) => {};\n");
    const wrong = await start("tools", [...flags, at("wrong.js")]).ended;
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("return a promise")]);
  } finally {
    await cable.end();
    double.end();
  }
});

it("fleetTest and fake devices run a user's device program in the user's tests", async () => {
  const vitest = resolve(packages.consumer, "node_modules/vitest/vitest.mjs");
  const tests = ["fleet.test.js", "app.test.js"];
  const output = await run(oldest, [vitest, "run", ...tests], packages.consumer);
  expect(output).toMatch(/Tests .*2 passed/);
});

it("a fleet runs in node:test, without vitest", async () => {
  const output = await run(oldest, ["--test", "fleet.node-test.js"], packages.consumer);
  expect(output).toMatch(/^\S+ pass 1$/m);
  expect(output).toMatch(/^\S+ fail 0$/m);
});

it("a scenario in TypeScript runs with a user's device program", async () => {
  const { code, stdout } = await start("simulator", ["run", at("scenario.ts"), "--json"]).ended;
  const report = JSON.parse(stdout);
  expect([code, report]).toMatchObject([
    0,
    { ok: true, world: "virtual", agents: { connected: 20 } },
  ]);
});

it("a live fleet can have a device in XS once its package is built, and reports that it has to be", async () => {
  const run = (): Promise<Ended> => start("simulator", ["run", at("mixed.yaml"), "--json"]).ended;
  const { code, stderr } = await run();
  expect([code, stderr]).toEqual([2, expect.stringContaining("npm rebuild @agoric/xsnap")]);

  const engine = await findXs(WORKSPACE);
  if (engine.kind === "missing") return; // no compiler here
  const installed = at("node_modules/@agoric/xsnap");
  rmSync(installed);
  symlinkSync(engine.path.replace(/\/xsnap-native\/.*$/, ""), installed);
  const report = JSON.parse((await run()).stdout);
  expect(report).toMatchObject({ ok: true, agents: { connected: 2 } });
  const answered = report.kinds.map(({ ok }: { ok: number }) => ok > 0);
  expect(answered).toEqual([true, true]);
});

it.runIf(HAS_CHROMIUM)("a browser app runs on msw's handlers, in a real browser", async () => {
  const { shown, requested } = await useApp(packages.consumer, ["sesame", "open sesame"]);
  expect(shown).toEqual([
    "User name, password or code are not right.",
    '{"agent_id":"lamp-1","online":true,"lamp":{"on":true}}',
  ]);
  expect(requested.filter((path) => !/\.(html|js|ico)$/.test(path))).toEqual([]);
});

it("types resolve for a strict TypeScript program", async () => {
  const types = join(packages.sdks, "node_modules/@types");
  mkdirSync(types);
  symlinkSync(resolve(WORKSPACE, "node_modules/@types/node"), join(types, "node"));
  const compilerOptions = { module: "nodenext", strict: true, noEmit: true, types: ["node"] };
  const config = JSON.stringify({ compilerOptions, files: ["typed.ts"] });
  writeFileSync(join(packages.sdks, "tsconfig.json"), config);
  await run(resolve(WORKSPACE, "node_modules/.bin/tsc"), ["-p", "."], packages.sdks);
});

const COMMANDS: readonly (readonly [string, Name])[] = [
  ["blindrelay", "tools"],
  ["blindrelay-server", "relay-server"],
  ["blindrelay-sim", "simulator"],
];

followPage("docs/recipes.md with the installed packages", () => ({
  link: (bin) => {
    for (const [command, name] of COMMANDS) {
      const script = `#!/bin/sh\nexec '${oldest}' '${packages.command(name)}' "$@"\n`;
      writeFileSync(join(bin, command), script, { mode: 0o755 });
    }
  },
  packageAt: (name) => packages.path(name as Name),
}));
