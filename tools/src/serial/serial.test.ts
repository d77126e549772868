/** Ports on real terminals and real sockets, and the supervisor in virtual time. */
import { execFileSync, spawn } from "node:child_process";
import dns from "node:dns";
import { once } from "node:events";
import { Socket } from "node:net";
import { type OpenPort, PortError, type PortEvents } from "@blindrelay/agent-sdk/bridge";
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { encodeFrame, plainChecksum, wire } from "@blindrelay/agent-sdk/serial";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { SerialPort } from "serialport";
import { afterEach, describe, expect, it, vi } from "vitest";
import { parseAddress } from "./address.ts";
import { serialOpener, usbOpener } from "./local.ts";
import { rfc2217Opener } from "./rfc2217.ts";
import { PortSupervisor } from "./supervise.ts";
import { tcpOpener } from "./tcp.ts";
import { TelnetReader } from "./telnet.ts";
import { Cable, HAS_SOCAT } from "./testing/pty.ts";
import { portServer, serve } from "./testing/server.ts";

const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 2));
};

const listening = () => {
  const said: Buffer[] = [];
  const closed: string[] = [];
  const events: PortEvents = {
    data: (bytes) => said.push(Buffer.from(bytes)),
    closed: (reason) => closed.push(reason),
  };
  return { events, closed, text: () => Buffer.concat(said).toString("latin1") };
};

describe("addresses", () => {
  it.each([
    ["/dev/ttyUSB0", { kind: "serial", path: "/dev/ttyUSB0" }],
    ["COM3", { kind: "serial", path: "COM3" }],
    ["usb:A9X", { kind: "usb", serialNumber: "A9X" }],
    ["tcp://plc.example:4001", { kind: "tcp", host: "plc.example", port: 4001 }],
    ["rfc2217://[::1]:2217", { kind: "rfc2217", host: "::1", port: 2217 }],
  ])("%s", (text, address) => expect(parseAddress(text)).toEqual(address));

  it.each([
    "",
    "usb:",
    "tcp://host",
    "tcp://host:0",
    "tcp://host:70000",
    "http://host:80",
    "tcp://a b:1",
  ])("%j is not an address", (text) => expect(parseAddress(text)).toBeNull());
});

describe.skipIf(!HAS_SOCAT)("a serial port (on a pseudo terminal by socat)", () => {
  let cable: Cable;
  afterEach(() => cable.end());

  it("carries bytes in both directions, and reports once that it is gone", async () => {
    cable = new Cable();
    const device = await cable.plug();
    const heard: Buffer[] = [];
    cable.received = (bytes) => heard.push(bytes);
    const ends = listening();
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, ends.events);
    await port.write(Buffer.from("M105\n"));
    await until(() => Buffer.concat(heard).length === 5);
    device.write(Buffer.from([0, 255, 17, 19, 10, 13]));
    await until(() => ends.text().length === 6);
    expect(ends.text()).toBe("\u0000\u00ff\u0011\u0013\n\r");
    await cable.pull();
    await until(() => ends.closed.length > 0);
    await expect(port.write(Buffer.from("x"))).rejects.toBeInstanceOf(PortError);
    await port.close();
    expect(ends.closed).toHaveLength(1);
  });

  it("delivers received bytes at once, not with the next timer", async () => {
    cable = new Cable();
    const device = await cable.plug();
    cable.received = (bytes) => device.write(bytes);
    let came = (): void => undefined;
    const events = { data: () => came(), closed: () => undefined };
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, events);
    const waitsMs: number[] = [];
    for (let i = 0; i < 40; i++) {
      const from = performance.now();
      const back = new Promise<void>((resolve) => {
        came = resolve;
      });
      await port.write(Buffer.from([i]));
      await back;
      waitsMs.push(performance.now() - from);
    }
    // With only the port's own timer each would take 250 ms.
    expect(waitsMs.filter((ms) => ms < 125).length).toBeGreaterThan(20);
    await port.close();
  });

  it("delivers messages to an agent whose line is a serialport at once, not with the next timer", async () => {
    cable = new Cable();
    const device = await cable.plug();
    const program = `
      import { serialLinks } from ${JSON.stringify(import.meta.resolve("@blindrelay/agent-sdk/serial/node"))};
      import { SerialPort } from ${JSON.stringify(import.meta.resolve("serialport"))};
      setTimeout(() => {}, 600_000);
      const line = new SerialPort({ path: process.argv[1], baudRate: 115_200 });
      serialLinks(line);
      line.on("open", () => console.log("open"));
    `;
    const args = ["--input-type=module", "-e", program, cable.path];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const hello = { version: 1, role: wire.ROLE_BRIDGE, wantsAnswer: true };
    const sizes = { life: 1, maxMessage: 65_536, window: 131_072 };
    const body = wire.encodeHello({ ...hello, ...sizes });
    const greeting = encodeFrame(wire.FRAME_HELLO, body, plainChecksum);
    const signal = AbortSignal.timeout(20_000);
    await once(child.stdout, "data", { signal });
    for (let i = 0; i < 20; i++) {
      device.write(greeting);
      await once(device, "data", { signal });
    }
    child.kill();
    await once(child, "exit");
  });

  it("changes its rate, and reports that a terminal has no control lines", async () => {
    cable = new Cable();
    await cable.plug();
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, listening().events);
    await port.configure({ ...DEFAULT_SETTINGS, baudRate: 9600 });
    await expect(port.configure({ ...DEFAULT_SETTINGS, dataBits: 7 })).rejects.toMatchObject({
      problem: "unsupported",
    });
    await expect(port.control({ dtr: true })).rejects.toMatchObject({ problem: "unsupported" });
    expect(await port.status()).toEqual({ cts: null, dsr: null, dcd: null });
    await port.close();
  });

  it("is found by its adapter's serial number, wherever it is plugged in", async () => {
    cable = new Cable();
    await cable.plug();
    const list = async () => [{ path: cable.path, serialNumber: "A9X" }] as never;
    const port = await usbOpener("A9X", {}, list)(DEFAULT_SETTINGS, listening().events);
    await port.close();
    await expect(
      usbOpener("OTHER", {}, list)(DEFAULT_SETTINGS, listening().events),
    ).rejects.toMatchObject({ problem: "gone" });
  });

  // OffbandMesh/meshcore-firmware#1014, Koromix/tytools#48
  it("is not opened if several adapters have its serial number", async () => {
    cable = new Cable();
    await cable.plug();
    const list = async () =>
      ["/dev/ttyUSB7", cable.path].map((path) => ({ path, serialNumber: "0001" })) as never;
    await expect(usbOpener("0001", {}, list)(DEFAULT_SETTINGS, listening().events)).rejects.toThrow(
      `several ports have serial number 0001 (/dev/ttyUSB7, ${cable.path})`,
    );
  });

  // nanoframework/Home#1018, esphome/issues#1382
  it("is opened with its lines as asked for, and no line changes with another", async () => {
    cable = new Cable();
    await cable.plug();
    const hupcl = (): string | undefined =>
      /-?hupcl/.exec(execFileSync("stty", ["-F", cable.path, "-a"], { encoding: "utf8" }))?.[0];
    const sets = vi
      .spyOn(SerialPort.prototype, "set")
      .mockImplementation((_, done) => done?.(null));
    const given = { dtr: false, hupcl: false };
    const port = await serialOpener(cable.path, given)(DEFAULT_SETTINGS, listening().events);
    expect(hupcl()).toBe("-hupcl");
    await port.control({ break: true });
    await port.control({ rts: false });
    await port.control({ break: false, dtr: true });
    await port.close();
    expect(sets.mock.calls.map(([lines]) => lines)).toEqual([
      { dtr: false, rts: true, brk: false },
      { dtr: false, rts: true, brk: true },
      { dtr: false, rts: false, brk: true },
      { dtr: true, rts: false, brk: false },
    ]);
    const plain = await serialOpener(cable.path)(DEFAULT_SETTINGS, listening().events);
    expect(hupcl()).toBe("hupcl");
    await plain.close();
    expect(sets).toHaveBeenCalledTimes(4);
  });

  it("fails a write that serialport forgot, such as one just before the port's end is reported, when the port goes", async () => {
    cable = new Cable();
    await cable.plug();
    const ends = listening();
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, ends.events);
    vi.spyOn(SerialPort.prototype, "write").mockReturnValue(true);
    const forgotten = expect(port.write(Buffer.from("x"))).rejects.toMatchObject({
      problem: "gone",
    });
    await cable.pull();
    await forgotten;
    expect(ends.closed).toHaveLength(1);
  });

  it("is lost after its timeout if it accepts no bytes any more, and can be opened again", async () => {
    cable = new Cable();
    const device = await cable.plug();
    device.pause();
    const states: string[] = [];
    let failure: unknown;
    const supervisor = new PortSupervisor({
      open: serialOpener(cable.path),
      settings: DEFAULT_SETTINGS,
      writeTimeoutMs: 150,
      timer: systemTimer(),
      use: async (port) => {
        if (failure === undefined) {
          port.write(Buffer.alloc(2_000_000)).catch((error) => {
            failure = error;
          });
        }
        return { data: () => undefined, end: async () => undefined };
      },
      mayPass: () => false,
      report: (state, reason) => states.push(`${state} ${reason}`),
      failed: (error) => states.push(String(error)),
    });
    supervisor.start();
    await until(() => states.length >= 2);
    expect(failure).toMatchObject({ problem: "stalled" });
    expect(states[1]).toContain("takes no bytes");
    device.resume();
    await until(() => states.length >= 3);
    expect(states[2]).toBe("open ");
    await supervisor.stop();
  });
});

describe("a port over TCP", () => {
  it("carries bytes unchanged and has no settings", async () => {
    const { server, port } = await serve((socket) => socket.pipe(socket));
    const ends = listening();
    const open = await tcpOpener("127.0.0.1", port)(DEFAULT_SETTINGS, ends.events);
    await open.write(Buffer.from([255, 0, 13]));
    await until(() => ends.text().length === 3);
    expect(ends.text()).toBe("\u00ff\u0000\r");
    await expect(open.configure(DEFAULT_SETTINGS)).rejects.toMatchObject({
      problem: "unsupported",
    });
    await open.close();
    expect(ends.closed).toHaveLength(1);
    server.close();
    await once(server, "close");
    await expect(
      tcpOpener("127.0.0.1", port)(DEFAULT_SETTINGS, listening().events),
    ).rejects.toMatchObject({ problem: "gone" });
  });

  // nodejs/node#54359
  it("of several addresses has time for each, and says why none answers", async () => {
    const both = [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ];
    const looked = vi
      .spyOn(dns, "lookup")
      .mockImplementation(((_host: string, _options: object, done: (...all: unknown[]) => void) =>
        done(null, both)) as never);
    const connected = vi.spyOn(Socket.prototype, "connect");
    for (const opener of [tcpOpener, rfc2217Opener]) {
      const opening = opener("ports.example", 1)(DEFAULT_SETTINGS, listening().events);
      await expect(opening).rejects.toMatchObject({
        problem: "gone",
        message: "connect ECONNREFUSED 127.0.0.1:1",
      });
    }
    expect(connected).toHaveBeenCalledTimes(2);
    for (const [[options]] of connected.mock.calls as unknown as [[object]][]) {
      expect(options).toMatchObject({ autoSelectFamilyAttemptTimeout: 2500 });
    }
    looked.mockRestore();
    connected.mockRestore();
  });
});

describe("a port over RFC 2217", () => {
  it("is set up, carries every byte, drives and reads the lines, and obeys the server's flow control", async () => {
    const told: number[][] = [];
    const { server, port } = await portServer(told);
    const ends = listening();
    const settings = { ...DEFAULT_SETTINGS, parity: "even", flowControl: "rts" } as const;
    const open = await rfc2217Opener("127.0.0.1", port)(settings, ends.events);
    expect(told).toEqual([
      [11, 255],
      [1, 0, 1, 0xc2, 0],
      [2, 8],
      [3, 3],
      [4, 1],
      [5, 3],
    ]);
    const all = Uint8Array.from({ length: 512 }, (_, i) => i & 255);
    await open.write(all);
    await until(() => ends.text().length === 512);
    expect(Buffer.from(ends.text(), "latin1")).toEqual(Buffer.from(all));
    expect(await open.status()).toEqual({ cts: true, dsr: true, dcd: true });
    await open.control({ dtr: true });
    let written = false;
    const later = open.write(Buffer.from("held")).then(() => {
      written = true;
    });
    await open.control({ rts: false });
    expect(written).toBe(false);
    await open.control({ break: true });
    await later;
    expect(told.slice(-3)).toEqual([
      [5, 8],
      [5, 12],
      [5, 5],
    ]);
    await open.close();
    server.close();
  });

  // pbhenson/vSPC.py#14, TeraTermProject/teraterm#1288
  it("carries every byte through a server that refuses telnet's binary mode", async () => {
    const { server, port } = await portServer([], { textOnly: true });
    const ends = listening();
    const open = await rfc2217Opener("127.0.0.1", port)(DEFAULT_SETTINGS, ends.events);
    const sent = [13, 13, 10, 0, 13, 255, 13, 0, 0, 65, 13];
    for (const bytes of [sent, sent]) await open.write(Uint8Array.from(bytes));
    await until(() => ends.text().length >= 2 * sent.length);
    expect([...Buffer.from(ends.text(), "latin1")]).toEqual([...sent, ...sent]);
    await open.close();
    server.close();
  });

  // nanoframework/Home#1018
  it("has its lines set before everything else", async () => {
    const told: number[][] = [];
    const { server, port } = await portServer(told);
    const opener = rfc2217Opener("127.0.0.1", port, { dtr: false, rts: false });
    const open = await opener(DEFAULT_SETTINGS, listening().events);
    expect(told.slice(0, 3)).toEqual([
      [5, 9],
      [5, 12],
      [11, 255],
    ]);
    await open.close();
    server.close();
  });

  it("is refused if the server does not support it or the rate", async () => {
    const refusing = await portServer([], { refuses: true });
    await expect(
      rfc2217Opener("127.0.0.1", refusing.port)(DEFAULT_SETTINGS, listening().events),
    ).rejects.toThrow("use tcp://");
    const slow = await portServer([], { maxRate: 9600 });
    await expect(
      rfc2217Opener("127.0.0.1", slow.port)(DEFAULT_SETTINGS, listening().events),
    ).rejects.toThrow("no 115200 baud");
    refusing.server.close();
    slow.server.close();
  });

  it("is a refusal of that port alone if the server hangs up, or refuses, before it answers all", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.prependListener("unhandledRejection", note);
    const slow = await portServer([], { maxRate: 9600, silentOn: [11] });
    const leaving = await portServer([], { silentOn: [1, 11] });
    leaving.server.on("connection", (socket) => setTimeout(() => socket.destroy(), 100));
    for (const [{ port }, reason] of [
      [slow, "no 115200 baud"],
      [leaving, "the connection is gone"],
    ] as const) {
      const opening = rfc2217Opener("127.0.0.1", port)(DEFAULT_SETTINGS, listening().events);
      await expect(opening).rejects.toThrow(reason);
      await new Promise((done) => setTimeout(done, 100));
    }
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    slow.server.close();
    leaving.server.close();
  });

  it("keeps 256 KB of what comes before its settings are made, the newest, and answers an option once", async () => {
    const { server, port } = await portServer([], { floods: 1_500_000 });
    const ends = listening();
    const answers: Buffer[] = [];
    server.on("connection", (socket) => socket.on("data", (bytes: Buffer) => answers.push(bytes)));
    const open = await rfc2217Opener(
      "127.0.0.1",
      port,
      {},
      () => undefined,
    )(DEFAULT_SETTINGS, ends.events);
    await until(() => ends.text().endsWith("end"));
    expect(ends.text()).toHaveLength(262_144);
    // IAC WONT 99
    expect(Buffer.concat(answers).toString("latin1").split("\u00ff\u00fcc")).toHaveLength(2);
    await open.close();
    server.close();
  });

  it("parses telnet, whatever the pieces", () => {
    const line = [
      65, 255, 255, 66, 255, 253, 44, 255, 250, 44, 107, 255, 255, 1, 255, 240, 67, 255, 241, 68,
    ];
    for (let size = 1; size <= line.length; size++) {
      const said: unknown[] = [];
      const data: number[] = [];
      const reader = new TelnetReader({
        data: (bytes) => data.push(...bytes),
        asked: (verb, option) => said.push([verb, option]),
        told: (option, body) => said.push([option, ...body]),
      });
      for (let at = 0; at < line.length; at += size) {
        reader.receive(Uint8Array.from(line.slice(at, at + size)));
      }
      expect([said, data]).toEqual([
        [
          ["do", 44],
          [44, 107, 255, 1],
        ],
        [65, 255, 66, 67, 68],
      ]);
    }
  });
});

describe("the supervisor", () => {
  const world = (byteDelayMs = 0) => {
    const timer = new ManualTimer();
    const log: string[] = [];
    let openings = 0;
    const state = {
      there: true,
      events: null as PortEvents | null,
      useFails: false,
      mayPass: false,
      writes: true,
      closes: Promise.resolve(),
    };
    const flow: string[] = [];
    /** The time of each write, and its bytes. */
    const written: number[][] = [];
    const port = {
      pause: () => flow.push("pause"),
      resume: () => flow.push("resume"),
      write: (bytes: Uint8Array) => {
        written.push([timer.now(), ...bytes]);
        return state.writes ? Promise.resolve() : new Promise<void>(() => {});
      },
      close: () => {
        state.events?.closed("closed");
        return state.closes;
      },
    } as unknown as OpenPort;
    let used: OpenPort | null = null;
    const supervisor = new PortSupervisor({
      open: async (_settings, events) => {
        openings++;
        if (!state.there) throw new PortError("gone", "no such device");
        state.events = events;
        return port;
      },
      settings: { ...DEFAULT_SETTINGS, baudRate: 1100 },
      writeTimeoutMs: 5000,
      byteDelayMs,
      timer,
      use: async (guarded) => {
        if (state.useFails) throw new Error("the state folder is broken");
        used = guarded;
        flow.push("use");
        return { data: () => undefined, end: async (reason) => void log.push(`end ${reason}`) };
      },
      mayPass: () => state.mayPass,
      report: (what, reason, waitMs) => log.push(`${what} ${reason} ${waitMs}`),
      failed: (error) => log.push(`failed ${(error as Error).message}`),
    });
    const run = async (ms: number): Promise<void> => {
      for (let left = ms; left >= 0; left -= 50) {
        for (let i = 0; i < 10; i++) await Promise.resolve();
        timer.advance(Math.min(50, Math.max(1, left)));
      }
      for (let i = 0; i < 10; i++) await Promise.resolve();
    };
    return {
      timer,
      log,
      flow,
      written,
      state,
      supervisor,
      run,
      openings: () => openings,
      used: () => used,
    };
  };

  it("reopens with growing pauses, reports the same news once, and starts over when the port is back", async () => {
    const { log, state, supervisor, run, openings } = world();
    supervisor.start();
    await run(20_000);
    state.there = false;
    state.events?.closed("unplugged");
    await run(60_000);
    expect(log).toEqual([
      "open  0",
      "end unplugged",
      "lost unplugged 250",
      "absent no such device 500",
    ]);
    // 0.25, 0.5, 1, 2, 4, 8, then every 10 s.
    expect(openings()).toBe(1 + 6 + 4);
    state.there = true;
    await run(10_000);
    expect(log.at(-1)).toBe("open  0");
  });

  it("reads nothing from the port before its user takes it", async () => {
    const { flow, supervisor, run } = world();
    supervisor.start();
    await run(100);
    expect(flow).toEqual(["pause", "use", "resume"]);
  });

  it("does not retry at full speed with a port that keeps disconnecting", async () => {
    const { state, supervisor, run, openings } = world();
    supervisor.start();
    for (let i = 0; i < 600; i++) {
      await run(50);
      state.events?.closed("loose contact");
    }
    expect(openings()).toBeLessThan(12);
  });

  it("gives a write the time of its bits and then gives the port up", async () => {
    const { log, state, supervisor, run, used } = world();
    supervisor.start();
    await run(100);
    state.writes = false;
    const failure = used()
      ?.write(new Uint8Array(1000))
      .catch((error: PortError) => error.problem);
    // 1,000 bytes at 1,100 baud take 10 s.
    await run(14_000);
    expect(log).toEqual(["open  0"]);
    await run(2_000);
    expect(await failure).toBe("stalled");
    expect(log[1]).toContain("takes no bytes for 5 s");
  });

  // cminyard/ser2net#71, theolind/pymysensors#21
  it("pauses after each byte for a device that is slower than its line", async () => {
    const { written, supervisor, run, used } = world(50);
    supervisor.start();
    await run(100);
    let isDone = false;
    void used()
      ?.write(Uint8Array.of(1, 2, 3))
      .then(() => {
        isDone = true;
      });
    await run(300);
    const [first = 0] = written[0] ?? [];
    expect([written, isDone]).toEqual([
      [
        [first, 1],
        [first + 50, 2],
        [first + 100, 3],
      ],
      true,
    ]);
  });

  it("does not reopen a port that the system is still closing", async () => {
    const { log, state, supervisor, run, openings } = world();
    const closing = Promise.withResolvers<void>();
    state.closes = closing.promise;
    supervisor.start();
    await run(100);
    state.events?.closed("stalled");
    await run(20_000);
    expect(openings()).toBe(1);
    closing.resolve();
    await run(1000);
    expect(log).toEqual(["open  0", "end stalled", "lost stalled 250", "open  0"]);
  });

  // BlackZork/mqmgateway#9, Opentrons/opentrons#21920
  it("tries again while what keeps its user from starting may pass", async () => {
    const { log, state, supervisor, run } = world();
    supervisor.start();
    await run(100);
    Object.assign(state, { useFails: true, mayPass: true });
    state.events?.closed("unplugged");
    await run(20_000);
    expect(log).toContain("absent the state folder is broken 500");
    state.useFails = false;
    await run(20_000);
    expect(log.at(-1)).toBe("open  0");
    expect(log.join()).not.toContain("failed");
  });

  it("ends if its user cannot continue, and when it is stopped", async () => {
    const failing = world();
    failing.state.useFails = true;
    failing.supervisor.start();
    await failing.run(1000);
    expect(failing.log).toEqual(["open  0", "failed the state folder is broken"]);
    const { log, supervisor, run, openings } = world();
    supervisor.start();
    await run(100);
    await supervisor.stop();
    await run(60_000);
    expect(log).toEqual(["open  0", "end closed"]);
    expect(openings()).toBe(1);
  });
});
