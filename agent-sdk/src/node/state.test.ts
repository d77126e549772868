import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { pipeOf } from "@blindrelay/protocol/platform";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { bootCountMarker } from "../core/bootcount.ts";
import { lockState, provision, type StartOptions, StateError, startAgent } from "./index.ts";
import { lockName } from "./lock.ts";

const root = mkdtempSync(join(tmpdir(), "blindrelay-state-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const freshFolder = (): string => mkdtempSync(join(root, "f-"));
const secret = (byte: number) => makeToken("e2e", new Uint8Array(32).fill(byte));
const locks = (folder: string) => readdirSync(folder).filter((name) => name.startsWith("lock."));
const slots = (folder: string) => readdirSync(folder).filter((name) => /^boot\.\d/.test(name));

/** Nobody listens there; the state folder is checked before anything is sent. */
const options = (stateDir: string, token = secret(1)): StartOptions => ({
  url: "http://127.0.0.1:9",
  agentId: "lamp-1",
  relayToken: makeToken("agent", new Uint8Array(32)),
  agentToken: token,
  stateDir,
  program: () => {},
  log: () => {},
});

const runOnce = async (stateDir: string, token = secret(1)): Promise<void> => {
  await (await startAgent(options(stateDir, token))).stop();
};

const problemOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (error) => (error instanceof StateError ? error.problem : `${error}`),
  );

const highest = (folder: string): number =>
  Math.max(
    ...slots(folder).map((name) => Number(readFileSync(join(folder, name), "utf8").split(" ")[2])),
  );

describe("a state folder", () => {
  it("that is missing or empty is provisioned, private, and counts starts", async () => {
    const folder = join(freshFolder(), "deep", "state");
    await runOnce(folder);
    expect(slots(folder).sort()).toEqual(["boot.0", "boot.1"]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of slots(folder)) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
    expect(highest(folder)).toBe(2);
    await runOnce(folder);
    expect(highest(folder)).toBe(3);
  });

  it("with other files and no count is refused and left unchanged", async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, "notes.txt"), "mine");
    expect(await problemOf(startAgent(options(folder)))).toBe("foreign");
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
  });

  // sixeyed/kiamol#72, canonical/postgresql-operator#1336
  it("that is the root of a volume is provisioned like an empty one", async () => {
    const folder = freshFolder();
    mkdirSync(join(folder, "lost+found"));
    await runOnce(folder);
    expect(highest(folder)).toBe(2);
  });

  it("with a damaged count is refused", async () => {
    const folder = freshFolder();
    await runOnce(folder);
    for (const name of slots(folder)) writeFileSync(join(folder, name), "");
    expect(await problemOf(startAgent(options(folder)))).toBe("unreadable");
  });

  it("with another token's count is refused", async () => {
    const folder = freshFolder();
    await runOnce(folder);
    expect(await problemOf(startAgent(options(folder, secret(2))))).toBe("otherToken");
    await runOnce(folder);
  });

  it("keeps the push key that a start names, and refuses another one", async () => {
    const folder = freshFolder();
    const key = (byte: number) => makeToken("push", new Uint8Array(32).fill(byte));
    const start = (pushKey?: string) =>
      startAgent({ ...options(folder), ...(pushKey === undefined ? {} : { pushKey }) }).then(
        (agent) => agent.stop(),
      );
    const kept = () => readFileSync(join(folder, "push.key"), "utf8");
    await start();
    expect(existsSync(join(folder, "push.key"))).toBe(false);
    await start(key(1));
    expect(kept()).toBe(key(1));
    expect(statSync(join(folder, "push.key")).mode & 0o777).toBe(0o600);
    await start();
    await start(key(1));
    expect(await problemOf(start(key(2)))).toBe("pushKey");
    await provision(folder, { agentToken: secret(2) });
    await provision(folder, { agentToken: secret(1) });
    expect(kept()).toBe(key(1));
    await expect(start(secret(1))).rejects.toThrow(
      "expected a push key (push_), got an end-to-end secret (e2e_)",
    );

    writeFileSync(join(folder, "push.key"), key(1).slice(0, 20));
    for (const named of [undefined, key(1)]) {
      expect(await problemOf(start(named))).toBe("pushKey");
    }
  });

  it("is provisioned on demand, only for a new token", async () => {
    const folder = freshFolder();
    await runOnce(folder);
    expect(await problemOf(provision(folder, { agentToken: secret(1) }))).toBe("usedToken");
    await provision(folder, { agentToken: secret(2) });
    await runOnce(folder, secret(2));
    expect(await problemOf(startAgent(options(folder)))).toBe("otherToken");
    expect(highest(folder)).toBe(4);
  });

  it("goes on counting when a token comes back after another one", async () => {
    const folder = freshFolder();
    await runOnce(folder);
    await provision(folder, { agentToken: secret(2) });
    await provision(folder, { agentToken: secret(1) });
    await runOnce(folder);
    expect(highest(folder)).toBe(5);
  });

  it("that contains a marker is provisioned by the first start alone", async () => {
    const folder = freshFolder();
    const { name, content } = bootCountMarker(nodeSuite(), secret(1));
    for (const count of [2, 3]) {
      writeFileSync(join(folder, name), content);
      await runOnce(folder);
      expect(highest(folder)).toBe(count);
    }
  });

  it("with other files is provisioned on demand, and keeps them", async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, "notes.txt"), "mine");
    await provision(folder, { agentToken: secret(1) });
    await runOnce(folder);
    expect(readFileSync(join(folder, "notes.txt"), "utf8")).toBe("mine");
  });

  it("that has only seen a power cut in its first write counts as empty", async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, "boot.0.new"), "blindrel");
    await runOnce(folder);
    expect(highest(folder)).toBe(2);
  });

  it.skipIf(process.getuid?.() === 0)("that cannot be written is refused", async () => {
    const folder = freshFolder();
    chmodSync(folder, 0o500);
    expect(await problemOf(startAgent(options(folder)))).toBe("medium");
  });

  it("that is a file is refused", async () => {
    const path = join(freshFolder(), "file");
    writeFileSync(path, "");
    expect(await problemOf(startAgent(options(path)))).toBe("medium");
  });

  it("is released if the program throws, and the start stays counted", async () => {
    const folder = freshFolder();
    const failing = {
      ...options(folder),
      program: async () => {
        throw new Error("broken program");
      },
    };
    await expect(startAgent(failing)).rejects.toThrow("broken program");
    await runOnce(folder);
    expect(highest(folder)).toBe(3);
  });
});

describe("the lock", () => {
  it("refuses a second agent on one folder and lets the next one in", async () => {
    const folder = freshFolder();
    const first = await startAgent(options(folder));
    const count = highest(folder);
    expect(await problemOf(startAgent(options(folder)))).toBe("locked");
    expect(await problemOf(provision(folder, { agentToken: secret(2) }))).toBe("locked");
    expect(highest(folder)).toBe(count);
    await first.stop();
    await first.stop();
    expect(locks(folder)).toEqual([]);
    await runOnce(folder);
  });

  it("is given to one of many concurrent callers", async () => {
    const folder = freshFolder();
    const asked = Array.from({ length: 5 }, () =>
      lockState(folder).then(
        (lock) => lock,
        () => null,
      ),
    );
    const taken = (await Promise.all(asked)).filter((lock) => lock !== null);
    expect(taken.length).toBeLessThanOrEqual(1);
    await Promise.all(taken.map((lock) => lock.release()));
    await (await lockState(folder)).release();
  });

  it("works in a folder whose path is too long for a socket", async () => {
    const folder = join(freshFolder(), "x".repeat(100), "y".repeat(100));
    mkdirSync(folder, { recursive: true });
    const lock = await lockState(folder);
    expect(await problemOf(lockState(folder))).toBe("locked");
    await lock.release();
    await (await lockState(folder)).release();
  });

  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children) child.kill("SIGKILL");
  });

  const holder = (folder: string, lock = "lockState"): Promise<ChildProcess> => {
    const code = `
      const { ${lock} } = await import(${JSON.stringify(new URL("./lock.ts", import.meta.url).href)});
      await ${lock}(${JSON.stringify(folder)});
      process.stdout.write("locked");
      // Should the test be killed, its end of the pipe closes and this process ends too.
      process.stdin.on("end", () => process.exit()).resume();`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    children.push(child);
    return new Promise((resolve, reject) => {
      child.stdout?.once("data", () => resolve(child));
      child.once("exit", (code) => reject(new Error(`the holder ended with ${code}`)));
    });
  };

  const gone = (child: ChildProcess, signal: NodeJS.Signals): Promise<void> =>
    new Promise((resolve) => {
      child.removeAllListeners("exit");
      child.once("exit", () => resolve());
      child.kill(signal);
    });

  // Linux' abstract sockets are to this lock what Windows' named pipes are, where nobody tried it.
  it.runIf(process.platform === "linux")("works by a name without a file", async () => {
    const name = `\0blindrelay-test-${randomUUID()}`;
    const child = await holder(name, "lockName");
    expect(await lockName(name)).toBeNull();
    await gone(child, "SIGKILL");
    const lock = await lockName(name);
    expect(lock).not.toBeNull();
    expect(await lockName(name)).toBeNull();
    await lock?.release();
    await (await lockName(name))?.release();
  });

  it("has on Windows a pipe of its own for each folder, however its path is written", () => {
    const [folder, other] = [freshFolder(), freshFolder()];
    symlinkSync(folder, `${folder}-link`);
    expect(pipeOf(`${folder}-link`)).toBe(pipeOf(folder));
    expect(pipeOf(folder)).toMatch(/^\\\\\.\\pipe\\blindrelay-[0-9a-f]{32}$/);
    expect(pipeOf(other)).not.toBe(pipeOf(folder));
  });

  it("is effective against other processes, even suspended ones, and ends with its owner", async () => {
    const folder = freshFolder();
    const child = await holder(folder);
    expect(await problemOf(lockState(folder))).toBe("locked");
    child.kill("SIGSTOP");
    expect(await problemOf(lockState(folder))).toBe("locked");
    child.kill("SIGCONT");
    await gone(child, "SIGKILL");
    expect(locks(folder)).toHaveLength(1);
    const lock = await lockState(folder);
    expect(locks(folder)).toHaveLength(1);
    await lock.release();
    expect(existsSync(folder)).toBe(true);
    expect(locks(folder)).toEqual([]);
  });
});
