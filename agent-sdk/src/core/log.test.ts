import type { RestartReason } from "@blindrelay/protocol";
import { makeToken } from "@blindrelay/protocol";
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import { describe, expect, it } from "vitest";
import { ManualTimer, MemoryStorage } from "../memory/index.ts";
import { AGENT_TOKEN, Client, RELAY_TOKEN, World } from "../testing/world.ts";
import {
  answerLog,
  type DeviceLog,
  endLog,
  keepingLog,
  keepLine,
  type LogOptions,
  openLog,
  SMALL_LOG_BYTES,
  serveLog,
} from "./log.ts";

const SECRETS = [AGENT_TOKEN, RELAY_TOKEN, "a wifi password"];

/** An agent with a log of its own, online, and a client of it. */
const logged = (bytes = SMALL_LOG_BYTES, maxPlaintext?: number) => {
  const storage = new MemoryStorage();
  let kept: DeviceLog | null = null;
  const world: World = new World({
    over: (links) => links,
    core: maxPlaintext === undefined ? {} : { maxPlaintext },
  });
  kept = openLog({ bytes, bootCount: 7, timer: world.timer, storage, secrets: SECRETS });
  serveLog(kept, world.core);
  const log = keepingLog(
    kept,
    () => {},
    () => "",
  );
  world.online();
  const client = new Client(world).open();
  return { world, client, log, kept, storage };
};

const texts = (answer: { lines: { text: string }[] }): string[] =>
  answer.lines.map(({ text }) => text);

describe("system.log", () => {
  it("answers the latest lines, numbered from 1, with level and time", () => {
    const { client, log, world } = logged();
    world.timer.advance(1500);
    log("info", "valve", { percent: 40 });
    log("debug", "not kept");
    log("error", "no sensor");
    expect(client.call("system.log", {}).result).toEqual({
      lines: [
        { n: 1, at_ms: 1500, level: "info", text: 'valve {"percent":40}' },
        { n: 2, at_ms: 1500, level: "error", text: "no sensor" },
      ],
      boot: 7,
      restart: { reason: "first", text: "" },
      dropped: 0,
    });
  });

  it("answers lines after a number from the oldest on, and otherwise the latest", () => {
    const { client, log } = logged();
    for (let i = 1; i <= 9; i++) log("info", `line ${i}`);
    const ask = (params: object) => texts(client.call("system.log", params).result);
    expect(ask({ lines: 2 })).toEqual(["line 8", "line 9"]);
    expect(ask({ after: 3, lines: 2 })).toEqual(["line 4", "line 5"]);
    expect(ask({ after: 9 })).toEqual([]);
    expect(ask({ after: 90 })).toEqual([]);
  });

  it("keeps as many lines as its ring holds, and counts those that it dropped", () => {
    const { client, log } = logged();
    for (let i = 1; i <= 200; i++) log("info", `line ${i} ${"x".repeat(40)}`);
    const { lines, dropped } = client.call("system.log").result;
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.at(-1).n).toBe(200);
    expect(dropped).toBe(200 - lines.length);
    expect(lines.map(({ text }: { text: string }) => text).join("").length).toBeLessThan(1024);
  });

  it.each([
    [1024, 128],
    [65536, 2000],
  ])(
    "cuts a line to an eighth of a ring of %i bytes, and to 2,000 characters",
    (bytes, longest) => {
      const { client, log } = logged(bytes);
      log("info", "x".repeat(3000));
      expect(texts(client.call("system.log").result)).toEqual(["x".repeat(longest)]);
    },
  );

  it("counts time from the start of the device", () => {
    const timer = new ManualTimer();
    timer.advance(5000);
    const kept = openLog({ bytes: 1024, bootCount: 1, timer, storage: null, secrets: [] });
    timer.advance(30);
    keepLine(kept, "info", "valve", undefined);
    expect(kept.lines).toEqual(["1 30 info valve"]);
  });

  it("leaves a line that does not fit after others, whole, to the next page", () => {
    const { client, log } = logged(SMALL_LOG_BYTES, 384);
    const lines = ["a", "b", "c"].map((letter) => letter.repeat(100));
    for (const line of lines) log("info", line);
    const pages = [0, 1, 2].map((after) => texts(client.call("system.log", { after }).result));
    expect(pages).toEqual(lines.map((line) => [line]));
  });

  it("leaves out fields that JSON cannot express", () => {
    const { client, log } = logged();
    log("info", "valve", { percent: 1n });
    expect(texts(client.call("system.log").result)).toEqual(["valve"]);
  });

  it("answers at most 100 lines", () => {
    const { client, log } = logged(65536);
    for (let i = 1; i <= 300; i++) log("info", "x");
    expect(client.call("system.log", { lines: 1000 }).result.lines).toHaveLength(100);
  });

  it("answers what fits one packet of a small board, page by page", () => {
    const small = logged(SMALL_LOG_BYTES, 384);
    for (let i = 1; i <= 9; i++) small.log("warn", `${i} ${"\u20ac".repeat(120)}`);
    const { lines } = small.client.call("system.log", {}).result;
    expect([lines.length, lines[0].n]).toEqual([1, 9]);
    expect(lines[0].text).toMatch(/^9 \u20ac+$/);
    small.log("info", "short");
    const seen: number[] = [];
    for (let after = 0; after < 10; ) {
      const page = small.client.call("system.log", { after }).result;
      seen.push(...page.lines.map(({ n }: { n: number }) => n));
      after = page.lines.at(-1).n;
    }
    expect(seen).toEqual(Array.from(seen, (_, i) => 10 - seen.length + 1 + i));
  });

  it.each([
    [{ after: -1 }, "after: the number of a line"],
    [{ after: "1" }, "after: the number of a line"],
    [{ lines: 0 }, "lines: a whole number from 1"],
    [{ lines: 1.5 }, "lines: a whole number from 1"],
    [{ follow: 1 }, "follow: true or false"],
  ])("refuses %o", (params, message) => {
    const { client } = logged();
    expect(client.call("system.log", params).error).toEqual({ code: -32000, message });
  });
});

describe("a session that follows", () => {
  const told = (client: Client): string[] =>
    client.inbox
      .filter(({ method }) => method === "system.logged")
      .flatMap(({ params }) => texts(params));

  it("gets later lines until it says otherwise; others do not", () => {
    const { client, log, world } = logged();
    const other = new Client(world).open();
    log("info", "before");
    client.call("system.log", { follow: true });
    log("info", "one");
    log("info", "two");
    client.pump();
    other.pump();
    expect([told(client), told(other)]).toEqual([["one", "two"], []]);
    client.call("system.log", {});
    log("info", "three");
    client.pump();
    client.call("system.log", { follow: false });
    log("info", "four");
    client.pump();
    expect(told(client)).toEqual(["one", "two", "three"]);
  });

  it("gets what was logged without a link once there is one again", () => {
    const { client, log, world } = logged();
    client.call("system.log", { follow: true });
    world.link().end.close(1006, "");
    world.settle();
    log("info", "alone");
    world.untilConnected();
    world.accept();
    world.timer.advance(5000);
    client.pump();
    expect(told(client)).toEqual(["alone"]);
  });

  it("gets each line once, also beside others that begin and end, in as many parts as it takes", () => {
    const { client, log, world } = logged(SMALL_LOG_BYTES, 384);
    const other = new Client(world).open();
    const third = new Client(world).open();
    client.call("system.log", { follow: true });
    client.call("system.log", { follow: true });
    log("info", "one");
    client.pump();
    other.call("system.log", { follow: true });
    third.call("system.log", { follow: false });
    for (const letter of ["a", "b", "c"]) log("info", letter.repeat(120));
    client.pump();
    other.pump();
    client.call("system.log", { follow: false });
    log("info", "two");
    client.pump();
    other.pump();
    const long = ["a", "b", "c"].map((letter) => letter.repeat(120));
    expect([told(client), told(other)]).toEqual([
      ["one", ...long],
      [...long, "two"],
    ]);
    expect(told(third)).toEqual([]);
  });

  it("gets nothing more once the device ends", () => {
    const { client, log, kept, world } = logged();
    client.call("system.log", { follow: true });
    log("info", "one");
    endLog(kept, "stop", "");
    log("info", "two");
    world.timer.advance(10_000);
    client.pump();
    expect([told(client), kept.followers]).toEqual([[], []]);
  });

  it("costs a device that has ended no timer", () => {
    const timer = new ManualTimer();
    const log = openLog({ bytes: 1024, bootCount: 1, timer, storage: null, secrets: [] });
    answerLog(log, { follow: true }, "one", 384);
    expect(timer.nextAt()).toBe(0);
    endLog(log, "stop", "");
    expect(timer.nextAt()).toBeNull();
  });

  it("is forgotten when it ends", () => {
    const { client, log, world, kept } = logged();
    client.call("system.log", { follow: true });
    client.sendJson({ jsonrpc: "2.0", method: "system.close" });
    log("info", "nobody");
    world.settle();
    expect([told(client), kept.followers]).toEqual([[], []]);
  });

  it("is forgotten when it ends, also by a device that logs nothing", () => {
    const { world, kept } = logged();
    for (let n = 0; n < 20; n++) {
      const client = new Client(world).open();
      client.call("system.log", { follow: true });
      client.sendJson({ jsonrpc: "2.0", method: "system.close" });
    }
    expect(kept.followers.length).toBeLessThan(2);
  });
});

describe("secrets", () => {
  it("that the device knows, and what looks like a token, are masked", () => {
    const { client, log } = logged(65536);
    const session = makeToken("session", new Uint8Array(32).fill(9));
    log("warn", `joined with a wifi password as ${RELAY_TOKEN}`, { token: AGENT_TOKEN });
    log("warn", `${session}, ${session.slice(0, 40)}, not sess_123`);
    expect(texts(client.call("system.log").result)).toEqual([
      'joined with *** as *** {"token":"***"}',
      "sess_***, sess_***, not sess_123",
    ]);
  });

  it("are masked wherever they stand in a line, and an empty one is none", () => {
    const kept = openLog({
      ...{ bytes: 65536, bootCount: 1, timer: new ManualTimer(), storage: null },
      secrets: ["", "a wifi password"],
    });
    keepLine(kept, "info", "a wifi password, and a wifi password", undefined);
    expect(kept.lines).toEqual(["1 0 info ***, and ***"]);
  });

  it("that look like tokens have 20 letters and digits or more after a prefix", () => {
    const { client, log } = logged(65536);
    const digits = "09AZaz".repeat(4);
    log("warn", `key_${digits.slice(0, 20)} key_${digits.slice(0, 19)}`);
    for (const other of "/:@[`{") {
      log(
        "warn",
        `key_${digits}${other}z key_${digits.slice(0, 10)}${other}${digits.slice(0, 10)}`,
      );
    }
    expect(texts(client.call("system.log").result)).toEqual([
      `key_*** key_${digits.slice(0, 19)}`,
      ...Array.from(
        "/:@[`{",
        (other) => `key_***${other}z key_${digits.slice(0, 10)}${other}${digits.slice(0, 10)}`,
      ),
    ]);
  });

  it.each([
    ["prefixes", "key_"],
    ["tokens", `key_${"a".repeat(20)} `],
  ])("are masked in linear time in a relay's text of nothing but %s", (_, part) => {
    const grown = growth(8_000, (n) => {
      const { log } = logged();
      const text = part.repeat(n / part.length);
      return () => log("warn", "login failed", { error: text });
    });
    expect(grown).toBeLessThan(LINEAR);
  });
});

describe("the reason of a restart", () => {
  const open = (storage: MemoryStorage, more: Partial<LogOptions> = {}): DeviceLog =>
    openLog({
      ...{ bytes: 1024, bootCount: 1, timer: new ManualTimer(), storage, secrets: SECRETS },
      ...more,
    });
  const fail = (log: DeviceLog, text: string) =>
    keepingLog(
      log,
      () => {},
      () => "",
    )("error", text);

  it.each<RestartReason>(["stop", "throw", "memory", "push"])("is told once: %s", (reason) => {
    const storage = new MemoryStorage();
    const log = open(storage);
    endLog(log, reason, "why");
    // A program that threw goes on to what handles what nobody caught.
    fail(log, "uncaught: why");
    expect(open(storage).restart).toEqual({ reason, text: "why" });
    expect(open(storage).restart).toEqual({ reason: "reset", text: "" });
  });

  it("stays the one that was told, whatever fails before the restart", () => {
    const storage = new MemoryStorage();
    const log = open(storage);
    endLog(log, "push", "why");
    fail(log, "the next one");
    expect(open(storage).restart).toEqual({ reason: "push", text: "why" });
  });

  it("has the last failure where its own text is empty, and its first 128 characters", () => {
    const storage = new MemoryStorage();
    const log = open(storage);
    fail(log, "no sensor");
    endLog(log, "stop", "");
    expect(open(storage).restart).toEqual({ reason: "stop", text: "no sensor" });
    endLog(open(storage), "throw", "x".repeat(200));
    expect(open(storage).restart.text).toBe("x".repeat(128));
  });

  it("costs the flash nothing at a start that finds none", () => {
    const storage = new MemoryStorage();
    open(storage);
    storage.write = () => expect.unreachable();
    expect(open(storage).restart).toEqual({ reason: "reset", text: "" });
  });

  it("is a reset after a power cut, with the last failure", () => {
    const storage = new MemoryStorage();
    fail(open(storage), `no sensor, ${AGENT_TOKEN}`);
    expect(open(storage).restart).toEqual({ reason: "reset", text: "no sensor, ***" });
  });

  it("costs the flash one write in ten minutes, however often something fails", () => {
    const storage = new MemoryStorage();
    const timer = new ManualTimer();
    const log = open(storage, { timer });
    let writes = 0;
    const { write } = storage;
    storage.write = (name, text) => {
      writes++;
      write.call(storage, name, text);
    };
    for (let i = 0; i < 3600; i++) {
      fail(log, `failure ${i}`);
      timer.advance(1000);
    }
    expect(writes).toBe(6);
  });

  it("keeps no device from its start or work, whatever its medium does", () => {
    const storage = new MemoryStorage();
    storage.write("log.last", "nonsense");
    expect(open(storage).restart.reason).toBe("reset");
    storage.read = () => {
      throw new Error("no medium");
    };
    storage.write = storage.read as never;
    const log = open(storage);
    fail(log, "again");
    expect([log.lines.length, log.restart.reason]).toEqual([1, "first"]);
  });
});
