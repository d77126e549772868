import { expect, it } from "vitest";
import { Measurements } from "../report/measure.ts";
import { figuresText, openFigures } from "./figures-port.ts";

const measured = (): Measurements => {
  let us = 0;
  const made = new Measurements(() => us);
  made.gaugeAt("agents.online", 3);
  made.set("agents.reconnects", 2);
  const [right, wrong] = [
    made.tally.asked({ device: "a", group: "g", method: "m" }, true),
    made.tally.asked({ device: "b", group: "g", method: "m" }, false),
  ];
  us = 250_000;
  made.tally.succeed(right);
  made.tally.fail(wrong, "WRONG_ANSWER", "3 instead of 4");
  return made;
};

it("serves the figures as Prometheus reads them, and nothing else", async () => {
  const figures = await openFigures(0, measured());
  try {
    const answered = await fetch(figures.url);
    const text = await answered.text();
    expect(answered.headers.get("content-type")).toContain("version=0.0.4");
    expect(text).toContain("# TYPE blindrelay_sim_calls_total counter");
    for (const line of [
      "blindrelay_sim_calls_sent_total 2",
      'blindrelay_sim_calls_total{outcome="ok"} 1',
      'blindrelay_sim_calls_total{outcome="failed"} 0',
      'blindrelay_sim_calls_total{outcome="wrong"} 1',
      "blindrelay_sim_agents_online 3",
      "blindrelay_sim_agents_reconnects_total 2",
      "blindrelay_sim_call_latency_seconds_count 2",
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).toMatch(/latency_seconds\{quantile="0\.5"\} 0\.25/);
    expect((await fetch(new URL("/", figures.url))).status).toBe(404);
    const port = Number(new URL(figures.url).port);
    await expect(openFigures(port, measured())).rejects.toThrow(`--metrics-port ${port}`);
  } finally {
    figures.close();
  }
});

it("says so where there are no latencies yet", () => {
  const text = figuresText(new Measurements(() => 0));
  expect(text).toContain('latency_seconds{quantile="0.99"} NaN');
});
