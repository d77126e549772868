import { expect, test } from "vitest";
import { Measurements } from "../report/measure.ts";
import type { RelayUsage } from "./metrics.ts";
import { RelayFigures } from "./relay-figures.ts";

const usage = (of: Partial<RelayUsage>): RelayUsage => ({
  rssBytes: 0,
  cpuUs: 0,
  forwarded: 0,
  dropped: new Map(),
  connections: 2,
  bindings: 1,
  queueBytes: 0,
  ...of,
});

const make = () => {
  const measured = new Measurements(() => 0);
  const violations: string[] = [];
  const figures = new RelayFigures(measured, (what) => violations.push(what));
  figures.started();
  return { measured, violations, figures };
};

test("totals continue across a restart, gauges are current values", () => {
  const { measured, figures } = make();
  figures.heard(usage({ forwarded: 5, dropped: new Map([["OFFLINE", 2]]), queueBytes: 70 }));
  figures.started();
  figures.heard(usage({ forwarded: 3, dropped: new Map([["OFFLINE", 1]]), queueBytes: 10 }));
  expect([measured.counter("relay.forwarded"), measured.counter("relay.dropped")]).toEqual([8, 3]);
  expect(measured.gauge("relay.queue_bytes")).toMatchObject({ last: 10, max: 70 });
  expect(figures.dropped).toEqual([{ reason: "OFFLINE", count: 3 }]);
  expect(figures.rssBytesPerAgent(2)).toBe(null);
});

test("memory and time are differences from the first reading", () => {
  const { figures } = make();
  figures.heard(usage({ rssBytes: 1000, cpuUs: 100, forwarded: 1 }));
  figures.heard(usage({ rssBytes: 3000, cpuUs: 600, forwarded: 6 }));
  expect([figures.rssBytesPerAgent(2), figures.cpuUsPerMessage()]).toEqual([1000, 100]);
});

test("everything is unknown for a relay without metrics", () => {
  const { measured, figures } = make();
  expect([measured.counter("relay.forwarded"), measured.gauge("relay.bindings")]).toEqual([
    null,
    null,
  ]);
  expect(figures.cpuUsPerMessage()).toBe(null);
});

test("a queue or a table over its limit is reported", () => {
  const { violations, figures } = make();
  figures.heard(usage({ queueBytes: 2_000_000, bindings: 2048 }));
  expect(violations).toEqual([]);
  figures.heard(usage({ queueBytes: 3_000_000 }));
  figures.heard(usage({ bindings: 2049 }));
  expect(violations).toHaveLength(2);
  figures.heard(usage({ connections: 1000, queueBytes: 67_000_000 }));
  expect(violations).toHaveLength(2);
  figures.heard(usage({ connections: 1000, queueBytes: 68_000_000 }));
  expect(violations).toHaveLength(3);
});
