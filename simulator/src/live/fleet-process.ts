/**
 * The process of a fleet: a forked child that starts on command and reports its progress.
 * It ends on command, and when its parent ends for any reason.
 */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Program } from "@blindrelay/agent-sdk";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { kindOf } from "../devices/kinds.ts";
import { Fleet } from "./fleet.ts";
import type { FleetOrder, FromFleet, ToFleet } from "./fleet-messages.ts";
import { liveLinkPort } from "./link.ts";

const PROGRESS_MS = 100;
/** For close frames to leave. The parent does not wait for more. */
const STOP_MS = 300;

let fleet: Fleet | null = null;
let rssBefore = 0;

function tell(message: FromFleet): void {
  // The parent may go at any time; "disconnect" then ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start(order: FleetOrder): Promise<void> {
  const program = order.program === null ? null : await importProgram(order.program);
  rssBefore = process.memoryUsage.rss();
  const ports = {
    link: liveLinkPort(),
    timer: systemTimer(),
    random: (length: number) => randomBytes(length),
    suite: nodeSuite(),
    log: () => {},
  };
  const members = order.agents.map(({ kind, ...member }) => ({
    ...member,
    program: program ?? kindOf(kind).program,
  }));
  fleet = new Fleet({ ...order, ports }, members);
  fleet.start();
  setInterval(() => tell({ type: "progress", connected: fleet?.connected ?? 0 }), PROGRESS_MS);
}

async function importProgram(file: string): Promise<Program> {
  const { default: program } = (await import(pathToFileURL(resolve(file)).href)) as {
    default?: unknown;
  };
  if (typeof program !== "function") {
    throw new Error(
      `${file}: a device program exports a function: export default (agent) => { … }`,
    );
  }
  return program as Program;
}

/** The parent reads the reason from our standard error's end. */
function fail(error: unknown): void {
  process.stderr.write(`${(error as Error)?.stack ?? error}\n`);
  process.exit(1);
}

function report(): void {
  const size = fleet?.size ?? 0;
  globalThis.gc?.();
  tell({
    type: "report",
    connected: fleet?.connected ?? 0,
    missing: fleet?.missing() ?? [],
    rssBytesPerAgent:
      size === 0 ? null : Math.max(0, Math.round((process.memoryUsage.rss() - rssBefore) / size)),
  });
}

process.on("message", (message: ToFleet) => {
  if (message.type === "start") start(message.order).catch(fail);
  else if (message.type === "report") report();
  else {
    fleet?.stop();
    setTimeout(() => process.exit(0), STOP_MS);
  }
});
process.on("disconnect", () => process.exit(0));
// Ctrl-C reaches the whole process group; the parent is the one that decides.
process.on("SIGINT", () => {});
