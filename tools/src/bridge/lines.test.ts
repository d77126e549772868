/**
 * Mode `lines` without ports: the mapping's rules, and the engine against a device in virtual time.
 */

import { DeviceAway } from "@blindrelay/agent-sdk/bridge";
import { ManualTimer, seededRandom } from "@blindrelay/agent-sdk/memory";
import { describe, expect, it } from "vitest";
import { LineEngine } from "./line-engine.ts";
import { LineReader, nmeaChecksum } from "./line-reader.ts";
import { readMapping } from "./mapping.ts";

const PRINTER = {
  quiet_ms: 20,
  commands: {
    "temperature.get": {
      send: "M105",
      answer: { regex: "^ok T:(?<celsius>[-0-9.]+)$", numbers: ["celsius"] },
      error: "^Error:(?<message>.*)",
      timeout_ms: 200,
    },
    "axis.move": {
      send: "G1 {axis}{to} F{speed}",
      params: {
        axis: { enum: ["X", "Y", "Z"] },
        to: { type: "number", minimum: 0, maximum: 220 },
        speed: { type: "integer", default: 3000 },
      },
      timeout_ms: 200,
      retries: 2,
    },
    "files.list": { send: "M20", more: "^(?<name>\\S+) (?<size>\\d+)$", answer: "^End$" },
    "config.get": { send: '{"get":"config"}', answer: { json: { type: "config" } } },
    ask: { send: "{#} ?", answer: "^{#} (?<value>\\d+)$", timeout_ms: 50, retries: 1 },
  },
  events: [
    { line: "^BTN (?<state>up|down)$", event: "button" },
    { line: { json: { type: "alarm" } }, event: "alarm" },
  ],
  unmatched: "line",
};

type Answerer = (line: string, say: (text: string, afterMs?: number) => void) => void;

const world = (device: Answerer, mapping: object = PRINTER) => {
  const timer = new ManualTimer();
  const plan = readMapping(mapping);
  const sent: string[] = [];
  const events: unknown[] = [];
  const state = { writes: true };
  const engine: LineEngine = new LineEngine(plan, {
    timer,
    write: async (bytes) => {
      if (!state.writes) await new Promise(() => {});
      const line = Buffer.from(bytes).toString().trimEnd();
      sent.push(line);
      device(line, (text, afterMs = 1) => {
        timer.set(afterMs, () => engine.receive(Buffer.from(text)));
      });
    },
    event: (event, data) => events.push([event, data]),
  });
  const command = (method: string) => {
    const found = plan.commands.find((one) => one.method === method);
    if (found === undefined) throw new Error(method);
    return found;
  };
  const run = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i++) {
      for (let turn = 0; turn < 4; turn++) await Promise.resolve();
      timer.advance(1);
    }
    for (let turn = 0; turn < 8; turn++) await Promise.resolve();
  };
  const call = (method: string, params?: unknown) =>
    engine.call(command(method), params).catch((error: Error) => error);
  return { engine, sent, events, run, call, state };
};

describe("a mapping", () => {
  it.each([
    [{}, "commands"],
    [{ commands: { a: { send: "x", speed: 1 } } }, "/commands/a"],
    [{ commands: { a: { send: "x {y}" } } }, "{y} is not declared"],
    [{ commands: { a: { send: "x\ny" } } }, "one line"],
    [{ commands: { a: { send: "x", answer: "(" } } }, "/commands/a/answer"],
    [{ commands: {}, events: [{ line: "[", event: "e" }] }, "/events/0/line"],
  ])("if invalid, is refused with its place: %j", (mapping, text) => {
    expect(() => readMapping(mapping)).toThrow(text);
  });

  it.each([
    [{ axis: "X" }, 'parameter "to" is missing'],
    [{ axis: "Q", to: 1 }, "one of X, Y, Z"],
    [{ axis: "X", to: "1" }, "must be a number"],
    [{ axis: "X", to: 300 }, "0 to 220"],
    [{ axis: "X", to: 1, speed: 1.5 }, "must be an integer"],
    [{ axis: "X", to: 1, reset: true }, 'no parameter "reset"'],
    [[1], "must be an object"],
  ])("refuses params before anything is sent: %j", async (params, text) => {
    const { call, sent } = world(() => undefined);
    expect(String(await call("axis.move", params))).toContain(text);
    expect(sent).toEqual([]);
  });

  it("does not let a parameter begin another line", async () => {
    const mapping = { commands: { say: { send: "SAY {text}", params: { text: {} } } } };
    const { call, sent } = world(() => undefined, mapping);
    expect(String(await call("say", { text: "a\nM112" }))).toContain("control characters");
    expect(sent).toEqual([]);
  });
});

describe("a command", () => {
  it("is sent with its parameters and resolves with the answer's groups", async () => {
    const { call, run, sent } = world((line, say) =>
      say(line === "M105" ? "ok T:21.5\r\n" : "ok\n"),
    );
    const answers = [call("temperature.get"), call("axis.move", { axis: "X", to: 10 })];
    await run(10);
    expect(await Promise.all(answers)).toEqual([{ celsius: 21.5 }, null]);
    expect(sent).toEqual(["M105", "G1 X10 F3000"]);
  });

  it("runs alone: the next one waits for its answer", async () => {
    const { call, run, sent } = world((_, say) => say("ok\n", 50));
    const all = [1, 2, 3].map((to) => call("axis.move", { axis: "X", to }));
    await run(49);
    expect(sent).toHaveLength(1);
    await run(150);
    await Promise.all(all);
    expect(sent).toEqual(["G1 X1 F3000", "G1 X2 F3000", "G1 X3 F3000"]);
  });

  it("collects lines before its answer, and reads JSON", async () => {
    const { call, run } = world((line, say) =>
      say(line === "M20" ? "a.gco 12\nb.gco 7\nEnd\n" : '{"type":"config","rate":3}\n'),
    );
    const answers = [call("files.list"), call("config.get")];
    await run(20);
    expect(await Promise.all(answers)).toEqual([
      {
        lines: [
          { name: "a.gco", size: "12" },
          { name: "b.gco", size: "7" },
        ],
      },
      { type: "config", rate: 3 },
    ]);
  });

  it("fails with the device's own message", async () => {
    const { call, run } = world((_, say) => say("Error:too hot\n"));
    const answer = call("temperature.get");
    await run(10);
    expect(String(await answer)).toBe("Error: too hot");
  });

  it("without an answer times out; with retries it is sent again", async () => {
    let times = 0;
    const { call, run, sent, engine } = world((line, say) => {
      if (line.startsWith("G1") && ++times === 3) say("ok\n");
    });
    const answers = [call("temperature.get"), call("axis.move", { axis: "X", to: 1 })];
    await run(1000);
    expect(String((await Promise.all(answers))[0])).toContain(
      "no answer from the device within 200 ms",
    );
    expect(await answers[1]).toBeNull();
    expect(sent).toEqual(["M105", "G1 X1 F3000", "G1 X1 F3000", "G1 X1 F3000"]);
    expect(engine.counters).toMatchObject({ timeouts: 3, retried: 2 });
  });

  // neundorf/CuteCom#33
  it.each([
    ["", "nothing came"],
    ["\r\n", "only line ends came"],
    ["T=21.5", "6 bytes came without a line end"],
    ["T=21.5\r", '1 other line came, the last: "T=21.5"'],
    ["a\nBTN up\nlast\n>", '3 other lines came, the last: "last"; 1 byte came without a line end'],
    ["T=21.5 \xb0C\n", '1 line came not in UTF-8 (is "encoding" "latin1"?)'],
    [`${"x".repeat(2_000)}\n`, "1 line came longer than max_line (1024)"],
  ])("that times out says what came instead: %j", async (said, what) => {
    const { call, run, engine } = world(() => engine.receive(Buffer.from(said, "latin1")));
    const answer = call("temperature.get");
    await run(300);
    expect(String(await answer)).toMatch(new RegExp(`may have run; ${RegExp.escape(what)}$`));
  });

  it("is not answered by a late answer to the previous one", async () => {
    let times = 0;
    const { call, run } = world((_, say) => say(`ok T:${++times}\n`, times === 1 ? 210 : 15));
    const answers = [call("temperature.get"), call("temperature.get")];
    await run(500);
    const [first, second] = await Promise.all(answers);
    expect(String(first)).toContain("no answer");
    expect(second).toEqual({ celsius: 2 });
  });

  it("with a number in its answer is not answered by another command's, however late", async () => {
    const { call, run } = world((line, say) => {
      const tag = line.split(" ")[0];
      // The first attempt's answer arrives while the second one waits.
      say(`${tag} ${tag}\n`, tag === "1" ? 85 : 30);
    });
    const answer = call("ask");
    await run(300);
    expect(await answer).toEqual({ value: "2" });
  });

  it("fails at once when the port is lost, is retryable, and says whether it was sent", async () => {
    const { call, run, engine } = world(() => undefined);
    const answers = [call("temperature.get"), call("temperature.get")];
    await run(5);
    engine.end("unplugged");
    const errors = (await Promise.all(answers)) as DeviceAway[];
    expect(errors.map(({ unavailable, sent }) => [unavailable, sent])).toEqual([
      [true, true],
      [true, false],
    ]);
    expect(await call("temperature.get")).toMatchObject({ unavailable: true, sent: false });
  });

  // stevenwritescode/exopet#28, space-concordia-robotics/robotics-prototype#144
  it("is not sent when others have kept it waiting for longer than its caller waits", async () => {
    const { call, run, sent } = world(() => undefined, {
      ...PRINTER,
      commands: {
        slow: { send: "SLOW", timeout_ms: 20_000, retries: 20 },
        open: { send: "OPEN DOOR" },
      },
    });
    const [slow, other, door] = [call("slow"), call("slow"), call("open")];
    await run(70_000);
    expect(sent).toEqual(["SLOW", "SLOW"]);
    expect(String(await slow)).toContain("sent 2 times; it may have run");
    for (const late of [other, door]) {
      expect(await late).toMatchObject({ unavailable: true, sent: false });
    }
    const next = call("open");
    await run(10);
    expect(sent.at(-1)).toBe("OPEN DOOR");
    void next;
  });

  // serialport/node-serialport#2518, sinara-hw/Booster#346
  it("is not answered by its echo, if the mapping says that there is one", async () => {
    const commands = { read: { send: "T?", answer: "(?<value>.+)" } };
    const device: Answerer = (line, say) => say(`> ${line}\r\n${line}\r\n`);
    const echoing = world(device, { echo: true, commands });
    const plain = world(device, { commands });
    const answers = [echoing.call("read"), plain.call("read")];
    await echoing.run(10);
    await plain.run(10);
    expect(await Promise.all(answers)).toEqual([{ value: "T?" }, { value: "> T?" }]);
  });

  it("waits in a bounded queue", async () => {
    const { call, run } = world(() => undefined);
    const answers = Array.from({ length: 70 }, () => call("temperature.get"));
    await run(1);
    const refused = await Promise.race(answers);
    expect(refused).toBeInstanceOf(DeviceAway);
    expect(String(refused)).toContain("64 commands wait");
  });
});

describe("unsolicited lines", () => {
  it("are events, even while a command waits", async () => {
    const { call, run, events } = world((_, say) => {
      say('BTN down\n{"type":"alarm","zone":2}\nhello\n');
      say("ok T:1\n", 5);
    });
    const answer = call("temperature.get");
    await run(20);
    expect(await answer).toEqual({ celsius: 1 });
    expect(events).toEqual([
      ["button", { state: "down" }],
      ["alarm", { type: "alarm", zone: 2 }],
      ["line", { line: "hello" }],
    ]);
  });

  // vortex314/serial2mqtt#16, crayzeewulf/libserial#172
  it("that were under way when the port opened are ignored up to their end", async () => {
    const events = [{ line: "T=(?<celsius>[0-9.]+)", event: "reading" }];
    const mapping = { quiet_ms: 100, commands: PRINTER.commands, events };
    const reading = (celsius: string) => ["reading", { celsius }];
    const cut = world(() => undefined, mapping);
    cut.engine.begin();
    await cut.run(5);
    cut.engine.receive(Buffer.from("T=1"));
    cut.engine.receive(Buffer.from("7\r\nT=22\r\n"));
    expect(cut.events).toEqual([reading("22")]);
    // After silence it is a whole one.
    const greeting = world(() => undefined, mapping);
    greeting.engine.begin();
    await greeting.run(101);
    greeting.engine.receive(Buffer.from("T=21\r\n"));
    expect(greeting.events).toEqual([reading("21")]);
    // So is an answer.
    const asked = world((_, say) => say("ok T:5\r\n"), mapping);
    asked.engine.begin();
    const answer = asked.call("temperature.get");
    await asked.run(300);
    expect(await answer).toEqual({ celsius: 5 });
  });

  it("that were cut, as by a device that restarts, are no part of a later answer", async () => {
    const commands = {
      read: { send: "READ", answer: "^A=(?<raw>[0-9]+)", timeout_ms: 300, retries: 0 },
    };
    const replies = ["A=4", "A=17\n", "A=5", "A=18\n"];
    const { call, run } = world((_, say) => say(replies.shift() ?? ""), { quiet_ms: 20, commands });
    for (const raw of ["17", "18"]) {
      const cut = call("read");
      await run(400);
      expect(await cut).toMatchObject({ message: expect.stringContaining("3 bytes came without") });
      const whole = call("read");
      await run(100);
      expect(await whole).toEqual({ raw });
    }
    replies.push("A=6", "A=19\n");
    const retried = { commands: { read: { ...commands.read, retries: 1 } }, quiet_ms: 20 };
    const again = world((_, say) => say(replies.shift() ?? ""), retried);
    const answer = again.call("read");
    await again.run(700);
    expect(await answer).toEqual({ raw: "19" });
  });

  it("are whole where they come slowly, past the timeout of a command", async () => {
    const commands = {
      read: { send: "READ", answer: "^A=(?<raw>[0-9]+)", timeout_ms: 300, retries: 1 },
    };
    // At 300 baud.
    const bytes = [..."A=123456789\n"];
    const { call, run } = world(
      (_, say) => {
        for (const [i, byte] of bytes.splice(0).entries()) say(byte, 50 + i * 33);
      },
      { quiet_ms: 20, commands },
    );
    const answer = call("read");
    await run(1000);
    expect(await answer).toEqual({ raw: "123456789" });
  });

  // bristlemouth/bm_protocol#337, eModbus/eModbus#308
  it("are read without the zeros of a half-duplex transceiver", async () => {
    const { call, run } = world((_, say) => say("\0\0ok T:1\0\r\n\0"));
    const answer = call("temperature.get");
    await run(300);
    expect(await answer).toEqual({ celsius: 1 });
  });

  // neundorf/CuteCom#33
  it.each(["\r", "\n", "\r\n", "\n\r"])("end with %j, whatever the pieces", (end) => {
    const bytes = Buffer.from(["one", "", "two", "three"].map((line) => line + end).join(""));
    for (const size of [1, 2, 3, 100]) {
      const lines: string[] = [];
      const reader = new LineReader({ maxLine: 16, encoding: "utf8", checksum: "none" }, (line) =>
        lines.push(line),
      );
      for (let at = 0; at < bytes.length; at += size) reader.receive(bytes.subarray(at, at + size));
      expect([lines, reader.dropped]).toEqual([["one", "two", "three"], 0]);
    }
  });

  it("in latin1 have a character for each byte, in both directions and in the checksum", () => {
    const lines: string[] = [];
    const reader = new LineReader({ maxLine: 999, encoding: "latin1", checksum: "nmea" }, (line) =>
      lines.push(line),
    );
    const text = String.fromCharCode(...Array.from({ length: 255 }, (_, i) => i + 1))
      .replace("\r", "")
      .replace("\n", "");
    const sum = Buffer.from(text, "latin1").reduce((xor, byte) => xor ^ byte, 0);
    const sealed = `${text}*${sum.toString(16).padStart(2, "0")}\r`;
    reader.receive(Buffer.from(sealed, "latin1"));
    expect(lines).toEqual([text]);
  });

  it("are dropped if they are too long or not text, and the next one is read", () => {
    const lines: string[] = [];
    const reader = new LineReader({ maxLine: 16, encoding: "utf8", checksum: "none" }, (line) =>
      lines.push(line),
    );
    reader.receive(Buffer.from(`${"x".repeat(5000)}\n`));
    reader.receive(Buffer.from([0xff, 0xfe, 10]));
    reader.receive(Buffer.from("good\r\n\r\n\nbye\n"));
    expect([lines, reader.dropped]).toEqual([["good", "bye"], 2]);
  });
});

it("200 calls over a line with 5 % garbage give 200 correct answers or clear errors", async () => {
  const random = seededRandom(7);
  const chance = () => (random(1)[0] as number) / 256;
  const noise = () => Buffer.from(random(1 + Math.floor(chance() * 12))).toString("latin1");
  /** Each line has a chance of one in twenty to be damaged, lost, or preceded by noise. */
  const spoil = (line: string): string => {
    if (chance() >= 0.05) return line;
    const kind = Math.floor(chance() * 4);
    if (kind === 0) return "";
    if (kind === 1) return `${noise()}${line}`;
    const at = Math.floor(chance() * (line.length - 1));
    if (kind === 2) return `${line.slice(0, at)}${noise()}${line.slice(at + 1)}`;
    return line.slice(0, at) + line.slice(at + 1);
  };
  const mapping = {
    encoding: "latin1",
    checksum: "nmea",
    quiet_ms: 5,
    commands: {
      double: {
        send: "{#},DBL,{n}",
        params: { n: { type: "integer" } },
        answer: { regex: "^{#},(?<result>-?\\d+)$", numbers: ["result"] },
        error: "^{#},ERR (?<message>.*)$",
        timeout_ms: 30,
        retries: 2,
      },
    },
  };
  const seal = (text: string) => `${text}*${nmeaChecksum(text, "utf8")}\n`;
  const { call, run, engine } = world((line, say) => {
    let heard = "";
    new LineReader({ maxLine: 100, encoding: "latin1", checksum: "nmea" }, (text) => {
      heard = text;
    }).receive(Buffer.from(spoil(`${line}\n`), "latin1"));
    const [tag, verb, n] = heard.split(",");
    if (verb !== "DBL") return;
    say(spoil(seal(`${tag},${Number(n) * 2}`)), 1 + Math.floor(chance() * 5));
  }, mapping);
  const ends: unknown[] = [];
  for (let n = 0; n < 200; n++) {
    const answer = call("double", { n });
    await run(20);
    let end: unknown;
    answer.then((value) => {
      end = value;
    });
    for (let i = 0; i < 20 && end === undefined; i++) await run(20);
    ends.push(end);
  }
  const wrong = ends.filter(
    (end, n) =>
      JSON.stringify(end) !== JSON.stringify({ result: 2 * n }) &&
      !(end instanceof Error && end.message.startsWith("no answer from the device")),
  );
  expect(wrong).toEqual([]);
  expect(ends.filter((end) => !(end instanceof Error)).length).toBeGreaterThan(195);
  expect(engine.counters.retried).toBeGreaterThan(3);
});
