/**
 * Commands that change the relay and the keyring, in homes whose keyring cannot be written: mounted
 * by itself as containers do it, read-only, full. The relay is changed only after this machine can
 * keep what follows from it, and no secret is lost.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { makeToken } from "@blindrelay/protocol";
import { everyCommand, PROFILE } from "@blindrelay/tools/testing/every-command";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLI, type Ended, House, PASSWORD, Running } from "./processes.ts";

/** Mounts of its own need root, and a kernel that has namespaces. */
const CAN_MOUNT = spawnSync("unshare", ["-m", "true"]).status === 0;

/** Shell commands that make the folder $C what the name says. */
const HOMES = {
  "mounted by itself": 'mount --bind "$C/default.json" "$C/default.json"',
  "read-only": 'mount --bind "$C" "$C"; mount -o remount,ro,bind "$C"',
  full: `mkdir "$OUT/was"; cp -a "$C/." "$OUT/was"; mount -t tmpfs -o size=48k tmpfs "$C"
    cp -a "$OUT/was/." "$C"; rm -rf "$OUT/was"; cat /dev/zero > "$C/filling" 2>/dev/null`,
};

/** Runs every command in one process, in the home that the environment describes. */
const IN_HOME = fileURLToPath(import.meta.resolve("@blindrelay/tools/testing/in-home"));

interface Said {
  readonly name: string;
  /** With a good home. */
  readonly ends: number;
  readonly code: number;
  readonly said: string;
}

const NAMES = Object.keys(everyCommand(""));

/** Words after which a person may have destroyed the only copy of a secret. */
const DESTROYS = /\b(remove|delete|rm|erase|discard)\b.*(\bfile\b|\.json|profile|keyring|\bkey\b)/i;

describe("every command, in each home", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-homes-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (command: readonly string[], env: Record<string, string>): readonly Said[] => {
    const given = Object.entries({ PATH: process.env.PATH ?? "", ...env });
    const [program = "", ...args] = [
      "env",
      "-i",
      ...given.map((pair) => pair.join("=")),
      ...command,
    ];
    const { stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
    expect(stderr).toBe("");
    const all = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Said);
    expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(NAMES));
    for (const { said } of all) {
      expect(said).not.toMatch(/undefined|NaN|\[object|a bug in blindrelay|\n +at /);
      expect(said).not.toMatch(DESTROYS);
    }
    return all;
  };
  const NODE = [process.execPath, "--disable-warning=ExperimentalWarning", IN_HOME];
  const wrong = (all: readonly Said[], also: readonly number[] = []) =>
    all.filter(({ code, ends }) => code !== ends && !also.includes(code));

  /** A folder with a profile and its copies, as all commands have left them. */
  const config = join(folder, "config");
  const file = join(config, "default.json");

  it("a good one: each does what it is for", () => {
    expect(wrong(run([...NODE, file], { BLINDRELAY_CONFIG_DIR: config }))).toEqual([]);
  });

  it("a fresh one: each works, or says what is missing", () => {
    const all = run([...NODE, "fresh"], { BLINDRELAY_CONFIG_DIR: join(folder, "fresh") });
    expect(wrong(all, [2])).toEqual([]);
    const says = /which (relay|account)\?|no (profile|keyring).*login|BLINDRELAY_\w+ is missing/;
    expect(all.filter(({ code, ends, said }) => code !== ends && !says.test(said))).toEqual([]);
  });

  // getpaseo/paseo#4695
  it("one whose profile an editor cut off: each that needs it says where, and it stays", () => {
    const broken = join(folder, "broken");
    mkdirSync(broken);
    const text = JSON.stringify(PROFILE, null, 2).slice(0, -20);
    writeFileSync(join(broken, "default.json"), text);
    const all = run(NODE, { BLINDRELAY_CONFIG_DIR: broken });
    const says = /line \d+, column \d+.*(mend|repair|restore)/;
    expect(wrong(all).filter(({ code, said }) => code !== 2 || !says.test(said))).toEqual([]);
    expect(readFileSync(join(broken, "default.json"), "utf8")).toBe(text);
  });

  it("one whose profile is a link: as a good one", () => {
    const link = join(folder, "linked");
    mkdirSync(link);
    symlinkSync(file, join(link, "default.json"));
    expect(wrong(run([...NODE, file], { BLINDRELAY_CONFIG_DIR: link }))).toEqual([]);
  });

  it.skipIf(!CAN_MOUNT)("none at all: each says what to set (needs root)", () => {
    const user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", ...NODE];
    expect(wrong(run(user, {}), [2])).toEqual([]);
    const { url, account_token = "", keyring } = PROFILE;
    const env = {
      BLINDRELAY_URL: url,
      BLINDRELAY_ACCOUNT_TOKEN: account_token,
      BLINDRELAY_AGENT_TOKEN: keyring["pump-7"]?.agent_token ?? "",
    };
    const needsHome = run(user, env).filter(({ code, ends }) => code !== ends);
    const says = /set HOME|run blindrelay login/;
    expect(needsHome.filter(({ code, said }) => code !== 2 || !says.test(said))).toEqual([]);
  });

  it.skipIf(!CAN_MOUNT).each(Object.entries(HOMES))(
    "%s: each works or says why not, and the secrets stay (needs root and unshare)",
    (_name, home) => {
      const out = mkdtempSync(join(folder, "out-"));
      writeFileSync(file, JSON.stringify(PROFILE), { mode: 0o600 });
      const env = { BLINDRELAY_CONFIG_DIR: config, C: config, OUT: out };
      const all = run(["unshare", "-m", "sh", "-c", SCRIPT(home), "sh", ...NODE], env);
      const says = /cannot write|mount its folder/;
      expect(wrong(all).filter(({ code, said }) => code !== 2 || !says.test(said))).toEqual([]);
      expect(JSON.parse(readFileSync(join(out, "default.json"), "utf8"))).toEqual(PROFILE);
    },
  );
});

/** Runs a command in such a home, then keeps what is in the folder. */
const SCRIPT = (home: string): string => `${home}
"$@"; code=$?; ls -A "$C" > "$OUT/list"; cp "$C/default.json" "$OUT/default.json"; exit $code`;

interface KeptFile {
  readonly account_token?: string;
  readonly keyring: { readonly [agentId: string]: { readonly agent_token: string } };
  readonly pending?: { readonly [agentId: string]: { readonly agent_token: string } };
}

const read = (path: string): KeptFile => JSON.parse(readFileSync(path, "utf8")) as KeptFile;

describe.skipIf(!CAN_MOUNT)("a keyring that cannot be written (needs root and unshare)", () => {
  const house = new House();
  let runs = 0;

  beforeAll(async () => {
    await house.open();
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    await house.cli(login, {}, PASSWORD);
    await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  });
  afterAll(() => house.close());

  /** The relay token of pump-7, as the relay has it now. */
  const relayToken = async (): Promise<string> => {
    const { stdout } = await house.cli(["agent", "export", "pump-7", "--json"]);
    return (JSON.parse(stdout) as { api_token: string }).api_token;
  };

  const runIn = async (
    home: keyof typeof HOMES,
    args: readonly string[],
  ): Promise<{ ended: Ended; files: string[]; after: KeptFile; config: string }> => {
    const config = house.path(`home-${++runs}`);
    const out = house.path(`out-${runs}`);
    mkdirSync(out);
    cpSync(house.path("config"), config, { recursive: true });
    const env = { BLINDRELAY_CONFIG_DIR: config, C: config, OUT: out };
    const command = ["sh", "-c", SCRIPT(HOMES[home]), "sh", process.execPath, CLI, ...args];
    const ended = await new Running("-m", command, env, "", "unshare").ended;
    const files = readFileSync(`${out}/list`, "utf8").split("\n").filter(Boolean);
    return { ended, files, after: read(`${out}/default.json`), config };
  };

  const homes = Object.keys(HOMES) as (keyof typeof HOMES)[];
  // What the relay changes too; `every command` has the others.
  const commands = [
    ["agent", "rotate", "pump-7", "--secret"],
    ["auth", "rotate"],
  ];
  it.each(homes.flatMap((home) => commands.map((words) => [home, words] as const)))(
    "%s: %j says what to do, and changes nothing",
    async (home, words) => {
      const before = { token: await relayToken(), file: read(house.path("config/default.json")) };
      const { ended, files, after } = await runIn(home, words);
      expect(ended.code).toBe(2);
      expect(ended.stderr).toMatch(/cannot write|mount its folder/);
      expect(after).toEqual(before.file);
      expect(files.filter((file) => file.endsWith(".new"))).toEqual([]);
      // The relay still has what it had: the device and the account go on.
      expect(await relayToken()).toBe(before.token);
    },
  );

  it.each(homes)("%s: agent rm deletes the agent, and says that a secret stays", async (home) => {
    await house.cli(["agent", "add", "Old", "--id", `old-${home.slice(0, 4)}`]);
    const id = `old-${home.slice(0, 4)}`;
    const { ended, after } = await runIn(home, ["agent", "rm", id, "--yes"]);
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain(`deleted ${id}`);
    expect(ended.stderr).toContain("its secret stays in the keyring");
    expect(Object.keys(after.keyring)).toContain(id);
  });
});

// stacklok/toolhive#3979
describe("a keyring that fails between the relay's change and its own", () => {
  const house = new House();
  let gate: Server;
  let url = "";
  /** Called when the relay has changed, before the command hears of it. */
  let onChanged: () => void = () => undefined;

  beforeAll(async () => {
    await house.open();
    gate = createServer(async (request, response) => {
      const { method = "GET", headers } = request;
      const { host: _, connection: __, ...others } = headers;
      const body = method === "GET" ? null : await buffer(request);
      const answer = await fetch(`${house.url}${request.url}`, {
        method,
        headers: others as Record<string, string>,
        ...(body === null || body.length === 0 ? {} : { body: new Uint8Array(body) }),
      });
      const text = await answer.text();
      if (/rotate/.test(request.url ?? "")) onChanged();
      const type = answer.headers.get("content-type") ?? "";
      response.writeHead(answer.status, { "content-type": type }).end(text);
    });
    gate.listen(0, "127.0.0.1");
    await once(gate, "listening");
    url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}`;
    await house.cli(["login", "--url", url, "--username", "ada", "--password-stdin"], {}, PASSWORD);
    await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  });
  afterAll(async () => {
    gate.close();
    await house.close();
  });

  /** Nobody can lock a folder. */
  const breakLock = (): void => {
    rmSync(house.path("config/default.json.lock"));
    mkdirSync(house.path("config/default.json.lock"));
  };
  const mendLock = (): void => rmSync(house.path("config/default.json.lock"), { recursive: true });

  it("agent rotate --secret prints the token, and a second run takes the secret that is pending", async () => {
    const before = read(house.path("config/default.json")).keyring["pump-7"]?.agent_token;
    onChanged = breakLock;
    const ended = await house.cli(["agent", "rotate", "pump-7", "--secret"]);
    onChanged = () => undefined;
    mendLock();
    expect(ended.code).toBe(2);
    const [, token = ""] = /^BLINDRELAY_RELAY_TOKEN=(agt_\w+)$/m.exec(ended.stdout) ?? [];
    const exported = await house.cli(["agent", "export", "pump-7", "--json"]);
    expect((JSON.parse(exported.stdout) as { api_token: string }).api_token).toBe(token);
    expect(ended.stderr).toContain("run this again");
    const between = read(house.path("config/default.json"));
    expect(between.keyring["pump-7"]?.agent_token).toBe(before);
    const pending = between.pending?.["pump-7"]?.agent_token;
    expect(pending).toMatch(/^e2e_/);
    expect((await house.cli(["agent", "rotate", "pump-7", "--secret"])).code).toBe(0);
    const after = read(house.path("config/default.json"));
    expect([after.keyring["pump-7"]?.agent_token, after.pending]).toEqual([pending, undefined]);
  });

  it("auth rotate prints the token, which is the only copy", async () => {
    onChanged = breakLock;
    const ended = await house.cli(["auth", "rotate"]);
    onChanged = () => undefined;
    mendLock();
    expect(ended.code).toBe(2);
    const token = ended.stdout.trim();
    const status = ["auth", "status", "--json"];
    expect((await house.cli(status)).code).toBe(5);
    expect((await house.cli(status, { BLINDRELAY_ACCOUNT_TOKEN: token })).code).toBe(0);
  });
});

describe.skipIf(!CAN_MOUNT)("a user without a home or an entry (needs root)", () => {
  const RELAY = CLI.replace("tools", "relay-server");
  // By env, because the folder of this test's own instruments is closed to that user.
  const run = (file: string, args: readonly string[], env: Record<string, string> = {}) => {
    const given = Object.entries({ PATH: process.env.PATH ?? "", ...env });
    const user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    const { status, stdout, stderr } = spawnSync(
      "env",
      ["-i", ...given.map((pair) => pair.join("=")), ...user, process.execPath, file, ...args],
      { encoding: "utf8" },
    );
    return { code: status, stdout, stderr };
  };

  it("reads the help of the relay, and hears what to set where a folder is needed", () => {
    expect(run(RELAY, ["start", "--help"])).toMatchObject({ code: 0, stderr: "" });
    const started = run(RELAY, ["start"]);
    expect(started.code).toBe(2);
    expect(started.stderr).toContain("set HOME, or specify --data DIR");
  });

  // felddy/foundryvtt-docker#39
  it("uses commands whose settings are in the environment, and hears what else is missing", () => {
    const env = {
      BLINDRELAY_URL: "http://127.0.0.1:9",
      BLINDRELAY_ACCOUNT_TOKEN: makeToken("account", new Uint8Array(32)),
    };
    expect(run(CLI, ["agent", "list"], env).code).toBe(4);
    expect(run(CLI, ["agent", "list"])).toMatchObject({ code: 2 });
    const login = run(CLI, ["profile", "show"], env);
    expect(login.code).toBe(2);
    expect(login.stderr).toContain("set HOME, or BLINDRELAY_CONFIG_DIR");
  });
});

describe("a keyring behind a link", () => {
  it("is changed where it is, and the link stays", async () => {
    const house = new House();
    try {
      await house.open();
      const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
      await house.cli(login, {}, PASSWORD);
      mkdirSync(house.path("dotfiles"));
      const [link, real] = [house.path("config/default.json"), house.path("dotfiles/keyring.json")];
      spawnSync("mv", [link, real]);
      spawnSync("ln", ["-s", real, link]);
      await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
      expect(Object.keys(read(real).keyring)).toEqual(["pump-7"]);
      expect(spawnSync("readlink", [link]).stdout.toString().trim()).toBe(real);
      expect(existsSync(`${real}.lock`)).toBe(false);
    } finally {
      await house.close();
    }
  });
});
