/** Local sides of `blindrelay attach`, and who may use a port: programs as users start them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, describe, expect, it } from "vitest";
import { CLI, type Running } from "../cli/processes.ts";
import { attachWorld } from "./attach-world.ts";
import { BridgeHouse, type News, newsOf, until } from "./world.ts";

/** More than both stores, both windows and a pipe take of what one does not read. */
const MUCH = 1_200_000;

describe.skipIf(!HAS_SOCAT)("blindrelay attach, by its local side", () => {
  const { world, way, bridged } = attachWorld();

  const listening = async (words: readonly string[]): Promise<{ running: Running; at: number }> => {
    const running = world.house.start(["attach", ...words, "--json"]);
    const { where } = await newsOf(running, "attached");
    return { running, at: Number(/:(\d+)$/.exec(String(where))?.[1]) };
  };

  const dial = async (at: number) => {
    const socket: Socket = connect(at, "127.0.0.1");
    socket.on("error", () => undefined);
    await once(socket, "connect");
    const seen = { text: "", isOver: false };
    socket.on("data", (bytes: Buffer) => {
      seen.text += bytes.toString("latin1");
    });
    socket.on("close", () => {
      seen.isOver = true;
    });
    return { socket, seen };
  };

  /** The command with pipes that the test reads when it wants to. */
  const piped = (words: readonly string[]) => {
    const child = spawn(process.execPath, [CLI, "attach", ...words, "--stdio"], {
      env: { PATH: process.env.PATH, BLINDRELAY_CONFIG_DIR: world.house.path("config") },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const told = { text: "" };
    child.stderr.on("data", (bytes: Buffer) => {
      told.text += bytes.toString();
    });
    return { child, told };
  };

  it("carries a pipe: every byte of standard input is written before it ends, also over a lost link", async () => {
    const { device, heard } = await bridged("pipe");
    const { child, told } = piped(["pipe"]);
    await until(() => told.text.includes("attached"));
    let seen = "";
    child.stdout.on("data", (bytes: Buffer) => {
      seen += bytes.toString();
    });
    child.stdin.write("first ");
    await until(() => heard.text === "first ");
    device.write("answer");
    await until(() => seen === "answer");
    way().cut();
    await until(() => told.text.includes("away"));
    child.stdin.end("last");
    way().mend();
    const [code] = await once(child, "exit");
    expect([code, heard.text]).toEqual([0, "first last"]);
  });

  it("--stdio --on-loss close ends with exit code 4 and the reason when the port is lost", async () => {
    await bridged("brief");
    const { child, told } = piped(["brief", "--on-loss", "close"]);
    await until(() => told.text.includes("attached"));
    way().cut();
    const [code] = await once(child, "exit");
    way().mend();
    expect([code, told.text]).toEqual([4, expect.stringContaining("brief: ")]);
  });

  it("over TCP, waits: the connection stays while the link is away, and what was written then arrives", async () => {
    const { device, heard } = await bridged("wait");
    const { running, at } = await listening(["wait", "--tcp", "0"]);
    const { socket, seen } = await dial(at);
    way().cut();
    await newsOf(running, "away");
    socket.write("written while away");
    device.write("said while away");
    way().mend();
    await until(() => heard.text === "written while away" && seen.text === "said while away");
    expect(seen.isOver).toBe(false);
    // One program at a time.
    const second = await dial(at);
    await until(() => second.seen.isOver);
    expect(seen.isOver).toBe(false);
    await running.stop();
  });

  it("over TCP with --on-loss close: a connection ends with the link, and the next one after it works", async () => {
    const { heard } = await bridged("close");
    const { running, at } = await listening(["close", "--tcp", "0", "--on-loss", "close"]);
    const first = await dial(at);
    way().cut();
    await until(() => first.seen.isOver);
    const early = await dial(at);
    await until(() => early.seen.isOver);
    way().mend();
    await newsOf(running, "attached");
    const { socket } = await dial(at);
    socket.write("again");
    await until(() => heard.text === "again");
    const { stderr } = await running.stop();
    expect(stderr).toContain("the port is away");
  });

  it("leaves nothing behind when it is interrupted before the bridge has answered", async () => {
    const added = await world.add("frozen");
    const cable = world.cable();
    await cable.plug();
    const bridge = world.bridge(added, { port: cable.path, mode: "raw" });
    await newsOf(bridge, "agent", "online");
    bridge.child.kill("SIGSTOP");
    const path = world.house.path("ttyFrozen");
    const isThere = () => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    const running = world.house.start(["attach", "frozen", "--pty", path]);
    await until(isThere);
    const { code } = await running.stop("SIGINT");
    expect([code, isThere()]).toEqual([0, false]);
    bridge.child.kill("SIGCONT");
  });

  it("says what it has not sent when it is stopped", async () => {
    const { heard } = await bridged("queue", { byte_delay_ms: 20 });
    const { running, at } = await listening(["queue", "--tcp", "0"]);
    const { socket } = await dial(at);
    socket.write(Buffer.alloc(500_000, "x"));
    await until(() => heard.text.length > 0);
    const { code, stdout } = await running.stop();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/"outcome":"not sent","from":\d+/)]);
  });

  it("--watch reads beside the one who writes, writes nothing, and one that stalls stops nobody else", async () => {
    const { device, heard } = await bridged("shared");
    const { at } = await listening(["shared", "--tcp", "0"]);
    const writer = await dial(at);
    const { child, told } = piped(["shared", "--watch"]);
    await until(() => told.text.includes("attached"));
    child.stdin.write("ignored");
    writer.socket.write("taken");
    await until(() => heard.text.length > 0);
    device.write(Buffer.alloc(MUCH, "x"));
    await until(() => writer.seen.text.length === MUCH);
    expect(told.text).not.toContain("lost");
    // It reads again, and is told what it has missed.
    let [first, last] = [0, ""];
    child.stdout.on("data", (bytes: Buffer) => {
      first += bytes.length;
      last = bytes.toString("latin1").slice(-1);
    });
    device.write("y");
    await until(() => last === "y" && told.text.includes("from the device are lost"));
    const missed = [...told.text.matchAll(/(\d+) bytes from the device are lost/g)];
    expect(first + missed.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(MUCH + 1);
    expect(heard.text).toBe("taken");
    child.kill();
    await once(child, "exit");
  });

  it("without koffi, says how --pty gets it, and serves the other sides", async () => {
    const { heard } = await bridged("bare");
    const hook = `import { registerHooks } from "node:module";
registerHooks({
  resolve: (name, context, next) => {
    if (name === "koffi") throw new Error("Cannot find package 'koffi'");
    return next(name, context);
  },
});
`;
    const env = { NODE_OPTIONS: `--import=${world.house.write("without-koffi.mjs", hook)}` };
    const path = world.house.path("ttyBare");
    const refused = await world.house.cli(["attach", "bare", "--pty", path], env);
    expect([refused.code, refused.stderr]).toEqual([
      7,
      expect.stringMatching(/Cannot find package.*npm install.*--rfc2217/),
    ]);
    const running = world.house.start(["attach", "bare", "--tcp", "0", "--json"], env);
    const { where } = await newsOf(running, "attached");
    const { socket } = await dial(Number(/:(\d+)$/.exec(String(where))?.[1]));
    socket.write("works");
    await until(() => heard.text === "works");
  });

  it("refuses a second writer, except by --takeover where the port allows it, and every writer of a read-only one", async () => {
    const { heard } = await bridged("open", { access: "takeover" });
    const first = await listening(["open", "--tcp", "0"]);
    const refused = await world.house.cli(["attach", "open", "--tcp", "1"]);
    expect([refused.code, refused.stderr]).toEqual([7, expect.stringContaining("in use by")]);
    const second = await listening(["open", "--rfc2217", "0", "--takeover"]);
    const away = await newsOf(first.running, "away");
    expect(away.reason).toContain("took over");
    (await dial(first.at)).socket.write("too late");
    (await dial(second.at)).socket.write("mine");
    await until(() => heard.text.length > 0);
    expect(heard.text).toBe("mine");
    const { device } = await bridged("meter", { access: "read-only" });
    const closed = await world.house.cli(["attach", "meter", "--tcp", "0"]);
    expect([closed.code, closed.stderr]).toEqual([7, expect.stringContaining("read-only")]);
    const watching = ["meter", "--tcp", "0", "--watch"];
    const { at } = await listening(watching);
    const { seen } = await dial(at);
    // Who only reads is in nobody's way.
    expect((await listening(watching)).at).not.toBe(at);
    // What comes before the command has accepted the connection is for nobody.
    const beat = setInterval(() => device.write("230.1 V"), 100);
    await until(() => seen.text.startsWith("230.1 V"));
    clearInterval(beat);
  });
});

describe.skipIf(!HAS_SOCAT)("a bridged port whose processes are killed", () => {
  const world = new BridgeHouse();
  afterAll(() => world.close());

  it("works again after kill -9 of the relay, of the bridge and of attach, and says what is unknown", async () => {
    // The relay comes back at its port.
    await world.open({ port: await freePort() });
    let relay = await world.house.relayProcess();
    const added = await world.add("modem");
    const cable = world.cable();
    const device = await cable.plug();
    let heard = "";
    cable.received = (bytes) => {
      heard += bytes.toString();
      device.write(bytes);
    };
    const bridge = async (): Promise<Running> => {
      const made = world.bridge(added, { port: cable.path, mode: "raw" });
      await newsOf(made, "agent", "online");
      return made;
    };
    const path = world.house.path("tty");
    const attach = async (): Promise<Running> => {
      const made = world.house.start(["attach", "modem", "--pty", path, "--json"]);
      await newsOf(made, "attached");
      return made;
    };
    let bridging = await bridge();
    let attached = await attach();
    const tool = () => {
      const socat = world.tool(path);
      const seen = { text: "" };
      socat.stdout.on("data", (bytes: Buffer) => {
        seen.text += bytes.toString();
      });
      return { socat, seen };
    };
    const { socat, seen } = tool();
    socat.stdin.write("one ");
    await until(() => seen.text === "one ");

    await relay.stop("SIGKILL");
    await newsOf(attached, "away");
    socat.stdin.write("two ");
    relay = await world.house.relayProcess();
    await newsOf(attached, "attached");
    await until(() => seen.text === "one two ");

    await bridging.stop("SIGKILL");
    await newsOf(attached, "away");
    socat.stdin.write("nobody's ");
    bridging = await bridge();
    const losses: News[] = [await newsOf(attached, "lost"), await newsOf(attached, "lost")];
    const direction = "to the device";
    expect(losses).toEqual([
      expect.objectContaining({ direction, outcome: "unknown", from: 4, bytes: 4 }),
      expect.objectContaining({ direction, outcome: "not sent", from: 8, bytes: 9 }),
    ]);
    await newsOf(attached, "attached");
    socat.stdin.write("three ");
    await until(() => seen.text === "one two three ");

    await attached.stop("SIGKILL");
    attached = await attach();
    const next = tool();
    next.socat.stdin.write("four");
    await until(() => next.seen.text === "four");
    expect(heard).toBe("one two three four");
    for (const running of [attached, bridging]) expect((await running.stop()).code).toBe(0);
  });
});
