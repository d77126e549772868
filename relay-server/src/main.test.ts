/** `blindrelay-server` as users type it: process, output and exit code (docs/commands.md). */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { type InitOptions, initStore, openData } from "./control/data-dir.ts";
import { postgres } from "./store/testing/engines.ts";
import { makeCertificates, noOpenssl } from "./testing/certificates.ts";
import { NATS_URL, noCluster } from "./testing/nodes.ts";

const MAIN = join(import.meta.dirname, "main.ts");
const PASSWORD = "correct horse";

let folder: string;
let data: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-main-"));
  data = join(folder, "relay");
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

const launch = (args: string[], environment: Record<string, string> = {}) => {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH ?? "", ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  return child;
};

/** Runs to the end. */
const run = async (args: string[], input = "", environment: Record<string, string> = {}) => {
  const child = launch(args, environment);
  child.stdin?.on("error", () => undefined).end(input);
  const [out, err, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream as never),
    text(child.stderr as NodeJS.ReadableStream as never),
    once(child, "exit"),
  ]);
  return { out, err, code };
};

/** Creates a store without a process. */
const make = (more: Partial<InitOptions> = {}) =>
  initStore({ data, username: "ada", password: PASSWORD, totp: false, ...more });

const INIT = () => ["init", "--data", data, "--username", "ada", "--password-stdin", "--json"];

/** Starts a relay and waits for its first line. */
const start = async (args: string[] = [], environment: Record<string, string> = {}) => {
  const child = launch(
    ["start", "--data", data, "--port", "0", "--metrics-port", "0", ...args],
    environment,
  );
  const [line] = await once(createInterface(child.stdout as never), "line");
  return { child, listening: JSON.parse(line) };
};

describe.skipIf(noCluster || noOpenssl)("a node whose start fails halfway", () => {
  test("leaves nothing open that would keep its process", async () => {
    const engine = postgres();
    const location = await engine.prepare();
    if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
    const store = location.url;
    await make({ store });
    const { cert: tlsCert, key: tlsKey } = makeCertificates(folder, "node");
    const { store: opened } = await openData({ data, store });
    await opened.db.schema.dropTable("notices").execute();
    await opened.close();
    const settings = { data, store, bus: NATS_URL, port: 0, metricsPort: 0, tlsCert, tlsKey };
    const program = `
      import { startServer } from ${JSON.stringify(join(import.meta.dirname, "server.ts"))};
      await startServer(${JSON.stringify(settings)}).catch((error) => console.log(error.message));
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    const ended = once(child, "exit");
    expect(await text(child.stdout as never)).toContain("notices");
    expect(await ended).toEqual([0, null]);
    await engine.remove();
  });
});

describe("init", () => {
  test("creates store, key and admin, and prints exactly what an authenticator needs", async () => {
    const made = await run(INIT(), `${PASSWORD}\n`);
    expect([made.code, made.err]).toEqual([0, ""]);
    const answer = JSON.parse(made.out);
    expect(Object.keys(answer)).toEqual(["username", "totp_secret", "otpauth_uri"]);
    expect(answer.username).toBe("ada");
    expect(answer.totp_secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(answer.otpauth_uri).toContain(answer.totp_secret);
    const key = statSync(join(data, "key", "master.key"));
    expect([key.size, key.mode & 0o777]).toEqual([32, 0o600]);
    for (const room of ["key", "store"]) {
      expect(statSync(join(data, room)).mode & 0o777).toBe(0o700);
    }
  });

  test("refuses to create a store if there is one", async () => {
    await make();
    const again = await run(INIT(), PASSWORD);
    expect([again.code, again.out]).toEqual([5, ""]);
    expect(again.err).toContain("there is a store already");
  });

  test.each([
    ["a password that will not do", [], "short", "8 to 256 characters"],
    ["an unknown flag", ["--password", "x"], PASSWORD, "unknown option"],
  ])("%s is a usage error", async (_what, more, input, named) => {
    const refused = await run([...INIT(), ...more], input);
    expect([refused.code, refused.out]).toEqual([2, ""]);
    expect(refused.err).toContain(named);
  });

  test("keeps its data in the user's state folder by default, where user list finds it", async () => {
    // Which of these applies depends on the system.
    const environment = { XDG_STATE_HOME: folder, HOME: folder, LOCALAPPDATA: folder };
    const anywhere = INIT().filter((arg) => arg !== "--data" && arg !== data);
    const made = await run([...anywhere, "--no-totp"], PASSWORD, environment);
    expect([made.code, made.err]).toEqual([0, ""]);
    const listed = await run(["user", "list", "--json"], "", environment);
    expect(JSON.parse(listed.out).users).toMatchObject([{ username: "ada" }]);
    const { out: help } = await run(["start", "--help"], "", environment);
    expect(help.replace(/\s+/g, "")).toContain(`(default:${folder}`);
  });

  test("without --json it prints text for people", async () => {
    const made = await run([...INIT().slice(0, -1), "--no-totp"], PASSWORD);
    expect(made.code).toBe(0);
    expect(made.out).toContain("the admin ada");
  });
});

test("a command exits with 70 if its output cannot be written", async () => {
  await make();
  for (const words of [`user list --data '${data}'`, "--help", "--version"]) {
    const line = `'${process.execPath}' '${MAIN}' ${words} > /dev/full`;
    const { status, stderr } = spawnSync("bash", ["-c", line], { encoding: "utf8" });
    expect([words, status, stderr]).toEqual([words, 70, expect.stringContaining("ENOSPC")]);
  }
});

describe("start", () => {
  test("prints its address on the first line, and exits with 0 after SIGTERM", async () => {
    await run([...INIT(), "--no-totp"], `${PASSWORD}\r\n`);
    const { child, listening } = await start();
    expect(Object.keys(listening)).toEqual(["event", "url", "metrics_url"]);
    expect(listening.event).toBe("listening");
    const config = await (await fetch(`${listening.url}/api/v1/auth/config`)).json();
    expect(config.totp).toBe("optional");
    expect((await fetch(listening.metrics_url)).status).toBe(200);
    const login = await fetch(`${listening.url}/api/v1/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ada", password: PASSWORD }),
    });
    expect(login.status).toBe(200);
    const { access_token, user } = await login.json();
    const log = text(child.stderr as never);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(await log).toContain('"msg":"request"');
    for (const secret of [PASSWORD, access_token, user.api_token]) {
      expect(await log).not.toContain(secret);
    }
  });

  test("a relay whose first line could not be written drains and ends with 70", async () => {
    await make();
    const flags = ["start", "--data", data, "--port", "0", "--metrics-port", "0"];
    const child = launch(flags);
    child.stdout?.destroy();
    const log = text(child.stderr as never);
    expect(await once(child, "exit")).toEqual([70, null]);
    expect(await log).toMatch(/the first line could not be written: .*EPIPE/);
    expect(await log).toContain('"msg":"stopped"');
    const full = `'${process.execPath}' '${MAIN}' ${flags.join(" ")} > /dev/full`;
    const { status, stderr } = spawnSync("bash", ["-c", full], { encoding: "utf8" });
    expect([status, stderr]).toEqual([70, expect.stringContaining("ENOSPC")]);
  });

  test("an error that nothing contains is logged and counted, and the relay goes on", async () => {
    await make();
    const bug =
      "setTimeout(() => { throw new Error('bang'); }, 1500); setTimeout(() => Promise.reject(new Error('bong')), 1500);";
    const importing = `--import data:text/javascript,${encodeURIComponent(bug)}`;
    const { child, listening } = await start([], { NODE_OPTIONS: importing });
    const log = text(child.stderr as never);
    const faults = async () => (await fetch(listening.metrics_url)).text();
    await expect.poll(faults).toContain('blindrelay_faults_total{in="process"} 2');
    expect((await fetch(`${listening.url}/health`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(await log).toMatch(/Error: bang\\n.*"msg":"an error was contained nowhere"/);
  });

  test("SIGINT drains too", async () => {
    await make();
    const { child } = await start();
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "a second %s does not cut the drain short",
    async (signal) => {
      await make();
      const { child, listening } = await start();
      const log = createInterface(child.stderr as never);
      const logged = (message: string) =>
        new Promise<void>((resolve) => {
          log.on("line", (line) => line.includes(`"msg":"${message}`) && resolve());
        });
      const link = new WebSocket(`${listening.url.replace("http", "ws")}/wss`);
      await once(link, "open");
      link.pause(); // the drain waits for the link to close
      const closed = once(link, "close");
      const draining = logged("draining");
      const ignored = logged("draining already");
      child.kill(signal);
      await draining;
      child.kill(signal);
      await ignored;
      link.resume();
      expect((await closed)[0]).toBe(1012);
      expect(await once(child, "exit")).toEqual([0, null]);
    },
  );

  test("SIGTERM also ends it when its log has no reader any more", async () => {
    await make();
    const { child } = await start();
    child.stderr?.destroy();
    child.stdout?.destroy();
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("refuses a folder that another relay uses, and accepts it once that one has ended", async () => {
    await make();
    const { child } = await start();
    const refused = await run(["start", "--data", data, "--port", "0", "--metrics-port", "0"]);
    expect([refused.code, refused.out]).toEqual([4, ""]);
    expect(refused.err).toContain("stop it first");
    child.kill("SIGKILL");
    await once(child, "exit");
    await start();
  });

  test("accepts settings from a file and the environment, and a key outside of the data folder", async () => {
    const key = { BLINDRELAY_MASTER_KEY: "ab".repeat(32) };
    await make({ masterKey: key.BLINDRELAY_MASTER_KEY });
    const file = join(folder, "config.json");
    writeFileSync(file, JSON.stringify({ publicUrl: "https://relay.example" }));
    const { child, listening } = await start(["--config", file], {
      ...key,
      BLINDRELAY_HOST: "::1",
    });
    expect(listening.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    child.kill("SIGTERM");
    await once(child, "exit");
  });

  test("a configuration file that contains a list is refused, though it names no invalid setting", async () => {
    const file = join(folder, "config.json");
    writeFileSync(file, "[]");
    const failed = await run(["start", "--data", data, "--config", file, "--print-config"]);
    expect(failed.err).toContain("must hold one JSON object");
    expect([failed.code, failed.out]).toEqual([2, ""]);
  });

  test("a missing store is reported with its fix", async () => {
    const failed = await run(["start", "--data", data]);
    expect(failed.err).toContain(`run blindrelay-server init --data ${data}`);
    expect([failed.code, failed.out]).toEqual([4, ""]);
  });

  test.each([
    ["another master key", [], { BLINDRELAY_MASTER_KEY: "cd".repeat(32) }, 5, "not the one"],
    ["a wrong port", ["--port", "http"], {}, 2, "--port (or BLINDRELAY_PORT)"],
    ["a file that is not there", ["--config", "/nowhere"], {}, 2, "cannot read the configuration"],
  ])("%s is reported with its fix", async (_what, args, environment, code, named) => {
    await make();
    const failed = await run(["start", "--data", data, ...args], "", environment);
    expect(failed.err).toContain(named);
    expect([failed.code, failed.out]).toEqual([code, ""]);
  });
});

test("--help shows an example for each command, --version the version", async () => {
  const helps = await Promise.all(["init", "start"].map((command) => run([command, "--help"])));
  for (const help of helps) {
    expect(help.code).toBe(0);
    expect(help.out).toMatch(/Examples?:\n.*blindrelay-server (init|start) /);
  }
  expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect((await run([])).code).toBe(2);
  expect((await run(["dance"])).code).toBe(2);
});
