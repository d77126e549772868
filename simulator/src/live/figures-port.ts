/** The figures of a live run while it goes on, as Prometheus text at `/metrics` on loopback. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Failure } from "@blindrelay/protocol/command-line";
import type { Measurements } from "../report/measure.ts";

const MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const QUANTILES = [50, 95, 99];

export interface FiguresPort {
  /** `http://127.0.0.1:PORT/metrics` */
  readonly url: string;
  close(): void;
}

/** 0 picks a port. Throws a Failure (usage) for one that is in use. */
export async function openFigures(port: number, measured: Measurements): Promise<FiguresPort> {
  const server = createServer((request, response) => {
    if (request.url !== "/metrics" || request.method !== "GET") {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": MEDIA_TYPE }).end(figuresText(measured));
  });
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    throw new Failure("usage", `--metrics-port ${port}: ${(error as Error).message}`);
  }
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}/metrics`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Families with one `# HELP` and `# TYPE` each; latencies in seconds. */
export function figuresText(measured: Measurements): string {
  const { tally } = measured;
  const trend = tally.latency.trend();
  const lines = [
    ...family("calls_sent_total", "counter", "Calls that were begun.", [["", tally.sent]]),
    ...family("calls_total", "counter", "Calls with an outcome.", [
      ['{outcome="ok"}', tally.ok],
      ['{outcome="failed"}', tally.failed - tally.wrong],
      ['{outcome="wrong"}', tally.wrong],
    ]),
    ...family("agents_online", "gauge", "Devices that have a link.", [
      ["", measured.gauge("agents.online")?.last ?? 0],
    ]),
    ...family("agents_reconnects_total", "counter", "Links beyond the first of each device.", [
      ["", measured.counter("agents.reconnects") ?? 0],
    ]),
    ...family("call_latency_seconds", "summary", "Of all calls; failed ones until they failed.", [
      ...QUANTILES.map((p): [string, number] => [
        `{quantile="${p / 100}"}`,
        trend === null ? Number.NaN : trend.percentile(p) / 1000,
      ]),
      ["_count", trend?.count ?? 0],
      ["_sum", trend === null ? 0 : (trend.avg * trend.count) / 1000],
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

const family = (
  name: string,
  type: "counter" | "gauge" | "summary",
  help: string,
  samples: readonly (readonly [suffix: string, value: number])[],
): string[] => {
  const full = `blindrelay_sim_${name}`;
  return [
    `# HELP ${full} ${help}`,
    `# TYPE ${full} ${type}`,
    ...samples.map(([suffix, value]) => `${full}${suffix} ${value}`),
  ];
};
