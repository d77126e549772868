import { describe, expect, test } from "vitest";
import { makeDate } from "./dates.ts";
import { parseProgram } from "./program.ts";
import { runVirtual } from "./run.ts";

/** The last Sunday of March: Berlin's clocks go from 2 to 3 o'clock at 01:00 UTC. */
const BEFORE_MS = Date.UTC(2026, 2, 29, 0, 30);

describe("a date in a time zone", () => {
  const Berlin = makeDate(() => BEFORE_MS, "Europe/Berlin");
  const shown = (date: Date): string => date.toString();

  test("has its local time, on both sides of a change of clocks", () => {
    expect(shown(new Berlin())).toBe(
      "Sun Mar 29 2026 01:30:00 GMT+0100 (Central European Standard Time)",
    );
    const later = new Berlin(BEFORE_MS + 3_600_000);
    expect([later.getHours(), later.getDay(), later.getTimezoneOffset()]).toEqual([3, 0, -120]);
    expect(later.toLocaleString()).toBe("3/29/2026, 3:30:00 AM");
  });

  test("is made from local fields and texts, and moved by them", () => {
    const noon = Date.UTC(2026, 2, 29, 10);
    expect(new Berlin(2026, 2, 29, 12).getTime()).toBe(noon);
    expect(new Berlin("2026-03-29T12:00").getTime()).toBe(noon);
    expect(Berlin.parse("Mar 29, 2026 12:00")).toBe(noon);
    expect(new Berlin("2026-03-29").getTime()).toBe(Date.UTC(2026, 2, 29));
    expect(new Berlin("2026-03-29T12:00:00Z").getTime()).toBe(Date.UTC(2026, 2, 29, 12));
    expect(new Berlin(2026, 2, 28, 12).setDate(29)).toBe(noon);
    // An hour that does not exist, and one that comes twice.
    expect(new Berlin(2026, 2, 29, 2, 30).getTime()).toBe(Date.UTC(2026, 2, 29, 1, 30));
    expect(new Berlin(2026, 9, 25, 2, 30).getTime()).toBe(Date.UTC(2026, 9, 25, 0, 30));
  });

  test("knows the world's clock only", () => {
    expect([Berlin.now(), new Berlin().getTime(), Berlin()]).toEqual([
      BEFORE_MS,
      BEFORE_MS,
      shown(new Berlin()),
    ]);
    const again = new Berlin(0).constructor as DateConstructor;
    expect(new again().getTime()).toBe(BEFORE_MS);
    expect(new Berlin() instanceof Berlin).toBe(true);
    expect(shown(new Berlin(Number.NaN))).toBe("Invalid Date");
  });
});

test("a program sees the scenario's time zone, start and language, not the machine's", async () => {
  const source = `export default (agent) => {
    agent.handle("when", () => [
      new Date().getHours(), (1234.5).toLocaleString(), "z".localeCompare("ä"), "i".toLocaleUpperCase(),
    ]);
  };`;
  const programs = new Map([["./p.js", parseProgram(source, "p.js")]]);
  const before = process.env.TZ;
  const traces: string[] = [];
  for (const zone of ["Asia/Tokyo", "America/New_York"]) {
    process.env.TZ = zone;
    const { report } = await runVirtual(
      {
        name: "zones",
        duration: "1m",
        timezone: "Europe/Berlin",
        start: "2026-03-29T00:59:30Z",
        devices: [{ group: "g", count: 1, program: "./p.js" }],
        clients: [
          { devices: "g", call: "when", rate: "1/s", until: "29s", expect: [1, "1,234.5", 1, "I"] },
          { devices: "g", call: "when", rate: "1/s", from: "31s", expect: [3, "1,234.5", 1, "I"] },
        ],
      },
      { seed: 1, programs },
    );
    expect(report.failures).toEqual([]);
    traces.push(report.trace);
  }
  if (before === undefined) delete process.env.TZ;
  else process.env.TZ = before;
  expect(new Set(traces).size).toBe(1);
});

test("a program's setTimeout of more than 24.8 days fires at once, as on Node, and agent.after waits", async () => {
  const source = `export default (agent) => {
    const fired = [];
    setTimeout(() => fired.push("timeout"), 25 * 86_400_000);
    agent.after(25 * 86_400_000, () => fired.push("after"));
    agent.handle("fired", () => fired);
  };`;
  const programs = new Map([["./p.js", parseProgram(source, "p.js")]]);
  const { report } = await runVirtual(
    {
      name: "long",
      duration: "1m",
      devices: [{ group: "a", count: 1, program: "./p.js" }],
      clients: [{ devices: "a", call: "fired", calls: 1, from: "30s", expect: ["timeout"] }],
    },
    { seed: 1, programs },
  );
  expect(report.calls).toMatchObject({ sent: 1, ok: 1 });
});
