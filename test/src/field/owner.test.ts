/**
 * Commands run as root, as through sudo with HOME kept, in folders of somebody else: what they
 * write stays that user's. As in linuxmint/xed#87.
 */
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { folderStorage } from "@blindrelay/agent-sdk/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";

const ADA = 65_534;
const GRACE = 65_533;

describe.skipIf(process.geteuid?.() !== 0)("run as root (needs to be root)", () => {
  const house = new House();
  const home = house.path("home");
  const env = { BLINDRELAY_CONFIG_DIR: join(home, ".config/blindrelay") };
  const profile = join(env.BLINDRELAY_CONFIG_DIR, "default.json");

  /** What is not Ada's: each path with its owner. */
  const ofOthers = () =>
    readdirSync(home, { recursive: true, encoding: "utf8" })
      .map((name) => [name, lstatSync(join(home, name)).uid])
      .filter(([, uid]) => uid !== ADA);

  beforeAll(async () => {
    await house.open();
    mkdirSync(home);
    chownSync(home, ADA, ADA);
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    expect((await house.cli(login, env, PASSWORD)).code).toBe(0);
  });
  afterAll(() => house.close());

  it("a keyring, its lock, its copies and their folder stay their owner's", async () => {
    expect((await house.cli(["agent", "add", "Pump", "--id", "pump"], env)).code).toBe(0);
    expect((await house.cli(["agent", "rotate", "pump"], env)).code).toBe(0);
    expect(readdirSync(env.BLINDRELAY_CONFIG_DIR).length).toBeGreaterThan(2);
    expect(ofOthers()).toEqual([]);
  });

  it("the owner and the mode are those of the file, not of its folder", async () => {
    chownSync(profile, GRACE, GRACE);
    chmodSync(profile, 0o644);
    expect((await house.cli(["agent", "add", "Lamp", "--id", "lamp"], env)).code).toBe(0);
    const { uid, gid, mode } = statSync(profile);
    expect([uid, gid, mode & 0o777]).toEqual([GRACE, GRACE, 0o640]);
    chownSync(profile, ADA, ADA);
    chownSync(`${profile}.1`, ADA, ADA);
  });

  it("an agent's state and its lock stay their owner's", async () => {
    const program = house.write("pump.mjs", "export default () => {};\n");
    const state = join(home, "state", "pump");
    const flags = ["--agent", "pump", "--state-dir", state, "--json"];
    const agent = house.start(["agent", "run", program, ...flags], env);
    await agent.line();
    expect(readdirSync(state).some((name) => name.startsWith("lock."))).toBe(true);
    await expect.poll(ofOthers).toEqual([]);
    await agent.stop();
    expect(readdirSync(state).length).toBeGreaterThan(1);
    chmodSync(join(state, "boot.0"), 0o640);
    folderStorage(state).write("boot.0", "again");
    expect(statSync(join(state, "boot.0")).mode & 0o777).toBe(0o640);
    expect(ofOthers()).toEqual([]);
  });
});
