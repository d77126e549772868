/**
 * Writes a complete project for Moddable's `mcconfig`: the SDK's modules, the device program,
 * main.js and the manifest of agent-sdk's example, and agent.json with the agent's identity. If
 * mcconfig is installed, it builds and flashes the project; otherwise the command to run is
 * printed.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type BoardConfig, CONFIG_FILE } from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import { isForward } from "@blindrelay/protocol/crypto";
import { makeFolder } from "@blindrelay/protocol/file-owner";
import { parse } from "acorn";
import { failing } from "../base/failing.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { readJsonFile } from "../base/text-file.ts";
import { writeWholeFile, writing } from "../base/whole-file.ts";
import { authorityOf } from "./authority.ts";
import { readSource } from "./program.ts";
import { SDK_ROOT } from "./sdk.ts";

export interface ModdableOptions extends JsonFlag {
  readonly program: string;
  readonly firmwareVersion?: string;
  readonly out?: string;
  readonly config?: string;
  readonly platform?: string;
  readonly port?: string | undefined;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
}

const MARK = "blindrelay-project.json";
const SDK_FOLDER = "blindrelay";
/** For a person's shell; a seed is kept nowhere. */
const DRAW_SEED = "seed=$(openssl rand -base64 32 | tr +/ -_ | tr -d =)";

/** The project's files by their paths in it. */
export type Project = ReadonlyMap<string, string>;

const inSdk = (path: string): URL => new URL(path, SDK_ROOT);

const sdkModules = async (): Promise<{ readonly [name: string]: string }> => {
  const build = inSdk("build/xs.ts");
  if (existsSync(build)) {
    const { buildXsModules } = (await import(build.href)) as {
      buildXsModules(): Promise<{ readonly [name: string]: string }>;
    };
    return buildXsModules();
  }
  const folder = inSdk("dist/moddable-modules/");
  return Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.endsWith(".js"))
      .map((name) => [name.slice(0, -3), readFileSync(new URL(name, folder), "utf8")]),
  );
};

interface Manifest {
  readonly include: readonly string[];
  readonly modules: { readonly [specifier: string]: string | readonly string[] };
}

const readManifest = (path: string): Manifest => JSON.parse(readFileSync(inSdk(path), "utf8"));

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** XS runs the whole language; only types are removed. */
const readXsProgram = (path: string): string => {
  const code = readSource(path);
  const { body } = failing("usage", `${path} cannot be read: `, () =>
    parse(code, { ecmaVersion: "latest", sourceType: "module" }),
  );
  if (body.some(({ type }) => type === "ExportDefaultDeclaration")) return code;
  throw new Failure("usage", `${path} does not export a function: export default (agent) => {…}`);
};

const readConfig = (folder: string): BoardConfig => {
  const path = join(folder, CONFIG_FILE);
  if (!existsSync(path)) {
    const fix = `make it with \`blindrelay provision --out ${folder}\``;
    throw new Failure("usage", `there is no ${path}: ${fix}`);
  }
  const config = readJsonFile(path, "the board's configuration") as BoardConfig;
  if (config.serial === undefined) return config;
  throw new Failure("usage", `${path} is for an Espruino on a bridge: provision without --serial`);
};

/**
 * All files of the project. `config`: null leaves agent.json as a form to fill in. `preferences`:
 * the folder of its preferences, if they are a file on this machine; null on a board.
 */
const moddableProject = async (
  program: string,
  config: BoardConfig | null,
  firmwareVersion: string | undefined,
  preferences: string | null = null,
): Promise<Project> => {
  const files = new Map<string, string>();
  const sdk = readManifest("moddable/manifest.json");
  const modules = Object.entries(sdk.modules).map(([specifier, path]) => [
    specifier,
    typeof path === "string" ? path.replace(/^.*moddable-modules\//, "./") : path,
  ]);
  files.set(
    `${SDK_FOLDER}/manifest.json`,
    pretty({ ...sdk, modules: Object.fromEntries(modules) }),
  );
  for (const [name, code] of Object.entries(await sdkModules())) {
    files.set(`${SDK_FOLDER}/${name}.js`, code);
  }
  for (const name of readdirSync(inSdk("moddable/"))) {
    if (name === "manifest.json") continue;
    files.set(`${SDK_FOLDER}/${name}`, readFileSync(inSdk(`moddable/${name}`), "utf8"));
  }
  const secure = config !== null && /^(wss|https):/.test(config.url);
  const example = readManifest("examples/moddable/manifest.json");
  const below = secure ? readManifest("examples/moddable/manifest-tls.json").include : [];
  const include = [
    ...example.include.map((path) =>
      path.endsWith("moddable/manifest.json") && !path.startsWith("$")
        ? `./${SDK_FOLDER}/manifest.json`
        : path,
    ),
    ...below.filter((path) => path.startsWith("$")),
  ];
  // It belongs to the program, because agent.json keeps its values.
  const ownFolder = preferences === null ? undefined : { root: preferences };
  const own = { firmware_version: firmwareVersion, file: ownFolder };
  files.set("manifest.json", pretty({ ...example, include, config: own }));
  const inExample = (name: string) => readFileSync(inSdk(`examples/moddable/${name}`), "utf8");
  files.set("main.js", inExample("main.js"));
  files.set("network.js", inExample(secure ? "network-tls.js" : "network.js"));
  files.set("program.js", readXsProgram(program));
  const trusted = secure ? { relay_ca: await authorityOf(config.url) } : {};
  files.set(
    "agent.json",
    config === null
      ? inExample("agent.example.json")
      : pretty({ config: { ...agentConfig(config), ...trusted } }),
  );
  files.set(".gitignore", "agent.json\n");
  return files;
};

const agentConfig = (config: BoardConfig) => ({
  relay: config.url,
  agent_id: config.agent_id,
  relay_token: config.relay_token,
  agent_token: config.agent_token,
  packet_version: config.v,
  device_key: config.device_key,
  push_key: config.push_key,
  rekey: config.rekey,
  ...config.wifi,
});

/** What belongs to one secret, and not to the next one in the same project. */
const OF_ONE_SECRET = ["device_key", "push_key", "rekey"];

/**
 * Keeps what the user added to agent.json, such as the Wi-Fi. Throws a Failure (usage) for a file
 * that cannot be read: nothing of it is lost.
 */
const keepAdded = (path: string, content: string): string => {
  if (!existsSync(path)) return content;
  const { config: before } = Object(readJsonFile(path, "the project's"));
  const { config } = JSON.parse(content);
  const isSame = Object(before).agent_token === config.agent_token;
  const added = Object.entries(Object(before)).filter(
    ([name]) => isSame || !OF_ONE_SECRET.includes(name),
  );
  return pretty({ config: { ...Object.fromEntries(added), ...config } });
};

/**
 * Identifies the secret whose boot count was written to the board, without revealing anything about
 * it.
 */
const hashOf = (config: BoardConfig): string =>
  createHash("sha256").update(config.agent_token).digest("hex");

/** Whether the build that writes the boot count was made for this secret. */
const hasProvisioningBuild = (folder: string, config: BoardConfig): boolean => {
  try {
    return JSON.parse(readFileSync(join(folder, MARK), "utf8")).provisioning === hashOf(config);
  } catch {
    return false;
  }
};

const writeMark = (folder: string, provisioning: string | null): void => {
  const made_by = "blindrelay flash --target moddable";
  writeFileSync(join(folder, MARK), pretty({ made_by, provisioning }));
};

/**
 * Moddable's Linux build stores preferences in one file of this folder, by default one that all
 * agents of the machine share: so each project has its own folder.
 */
const preferencesOf = (folder: string, platform: string): string | null =>
  /^(x-)?lin(\/|$)/.test(platform) ? `${join(folder, "preferences")}/` : null;

/** The first part of a boot count's slot, as agent-sdk/src/moddable/storage.ts names it. */
const BOOT_COUNT_KEY = "boot.0.0";

const holdsBootCount = (preferences: string): boolean =>
  readdirSync(preferences, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some(({ name }) => readFileSync(join(preferences, name), "latin1").includes(BOOT_COUNT_KEY));

/** Throws a Failure (usage); then nothing was written that only the user has. */
const writeProject = (folder: string, project: Project): void => {
  const isForeign = writing(folder, () => {
    makeFolder(folder, 0o777);
    return readdirSync(folder).length > 0 && !existsSync(join(folder, MARK));
  });
  if (isForeign) {
    throw new Failure(
      "usage",
      `${folder} contains other files: specify an empty or new folder with --out`,
    );
  }
  const form = join(folder, "agent.json");
  const hasForm = existsSync(form);
  writing(folder, () => {
    makeFolder(join(folder, SDK_FOLDER), 0o777);
    if (!existsSync(join(folder, MARK))) writeMark(folder, null);
  });
  for (const [path, content] of project) {
    const file = join(folder, path);
    if (file !== form) writing(file, () => writeFileSync(file, content, { mode: 0o644 }));
    // Rewritten at each run, except the form that the user filled in.
    else if (!hasForm || !content.includes("…")) writeWholeFile(form, keepAdded(form, content));
  }
};

const isInstalled = (command: string): boolean =>
  process.env.MODDABLE !== undefined &&
  spawnSync("sh", ["-c", `command -v ${command}`], { stdio: "ignore" }).status === 0;

/** Writes the project, and builds and uploads it if mcconfig is installed. */
export const flashModdable = async (options: ModdableOptions): Promise<void> => {
  if (options.out === undefined) throw new Failure("usage", "--target moddable needs --out DIR");
  if (options.watch === true) throw new Failure("usage", "--watch is for --target espruino");
  const folder = resolve(options.out);
  const config = options.config === undefined ? null : readConfig(options.config);
  if (config?.push_key !== undefined)
    printStatus("Moddable accepts no programs over the relay: its push key guards its secret only");
  const platform = options.platform ?? "esp32";
  const preferences = preferencesOf(folder, platform);
  const { program, firmwareVersion } = options;
  const project = await moddableProject(program, config, firmwareVersion, preferences);
  const args = ["-m", "-p", platform];
  // Only that build may have the seed: docs/moddable.md.
  const needsSeed = isForward(config?.v);
  const first = ["mcconfig", ...args, "provision=1", ...(needsSeed ? [DRAW_SEED] : [])].join(" ");
  const command = ["mcconfig", ...args].join(" ");
  const ready = isInstalled("mcconfig");
  if (options.dryRun !== true) {
    writeProject(folder, project);
    if (preferences !== null) makeFolder(preferences);
  }
  if (options.json === true) {
    printJson({
      project: folder,
      files: [...project.keys()],
      commands: [first, command],
      mcconfig: ready,
      dry_run: options.dryRun ?? false,
    });
  } else {
    const what = options.dryRun === true ? "would be written" : "written";
    for (const [path, content] of project) printStatus(`${path}: ${content.length} bytes, ${what}`);
    printText(`project: ${folder}`);
    if (config === null)
      printStatus(
        "fill in agent.json, or specify the folder that `provision --out` wrote with --config",
      );
    printText(`once, for its boot count: cd ${folder} && ${first}`);
    printText(`then, with the program:   cd ${folder} && ${command}`);
    if (config?.wifi === undefined)
      printStatus('a board with Wi-Fi: add "ssid" and "password" to "config" in agent.json first');
  }
  if (options.dryRun === true || config === null) return;
  if (!ready) {
    printStatus(
      "mcconfig is not installed: install the Moddable SDK and set MODDABLE, then run these commands",
    );
    return;
  }
  if (!hasProvisioningBuild(folder, config)) {
    const seed = needsSeed ? [`seed=${randomBytes(32).toString("base64url")}`] : [];
    await run("mcconfig", [...args, "provision=1", ...seed], folder, options.port);
    writeMark(folder, hashOf(config));
    const where = preferences === null ? "on its console" : `and its count is in ${preferences}`;
    printStatus(
      `the build that writes its boot count is ready: start it once, until it prints "provisioned" ${where}; then run this command again for the program`,
    );
    return;
  }
  if (preferences !== null) {
    if (!holdsBootCount(preferences)) {
      const advice = 'start the build once, until it prints "provisioned", and repeat the command';
      throw new Failure("device", `no boot count in ${preferences}: ${advice}`);
    }
    printStatus(`its boot count was written, and read back from ${preferences}`);
  }
  await run("mcconfig", args, folder, options.port);
};

/** mcconfig's output goes to standard error; its failure is the board's or the toolchain's. */
const run = (command: string, args: string[], cwd: string, port?: string): Promise<void> =>
  new Promise((done, reject) => {
    const env = { ...process.env, ...(port === undefined ? {} : { UPLOAD_PORT: port }) };
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", 2, 2] });
    child.on("error", (error) =>
      reject(new Failure("device", `${command}: ${error.message}`, error)),
    );
    child.on("close", (code) => {
      if (code === 0) done();
      else reject(new Failure("device", `${command} ended with ${code}; see its output above`));
    });
  });
