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
import { kindNamed } from "../devices/kinds.ts";
import { Stream } from "../streams.ts";
import { Fleet, type FleetMember } from "./fleet.ts";
import type { FleetOrder, FleetProgress, FleetStep, FromFleet, ToFleet } from "./fleet-messages.ts";
import { liveLinkPort } from "./link.ts";
import { Shaper } from "./shaped-link.ts";

const PROGRESS_MS = 100;
/** For close frames to leave. The parent does not wait for more. */
const STOP_MS = 300;

let fleet: Fleet | null = null;
let rssBefore = 0;
const ids: string[] = [];
const shapers = new Map<number, Shaper>();

function tell(message: FromFleet): void {
  // The parent may go at any time; "disconnect" then ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start(order: FleetOrder): Promise<void> {
  const programs = await Promise.all(order.programs.map(readProgram));
  rssBefore = process.memoryUsage.rss();
  const link = liveLinkPort();
  const ports = {
    link,
    timer: systemTimer(),
    random: (length: number) => randomBytes(length),
    suite: nodeSuite(),
    log: () => {},
  };
  const members = order.agents.map(({ program, shape, ...member }, n): FleetMember => {
    ids.push(member.id);
    const made = { ...member, program: programs[program] as Program };
    if (shape === undefined) return made;
    const shaper = new Shaper(link, shape, new Stream(`${order.seed}/${member.name}/net`));
    shapers.set(n, shaper);
    return { ...made, link: shaper };
  });
  // Not the order itself, which would be kept with all its agents.
  const { url, connectionsPerSecond } = order;
  fleet = new Fleet({ url, connectionsPerSecond, ports }, members);
  fleet.start();
  setInterval(() => tell({ type: "progress", ...progress() }), PROGRESS_MS);
}

function progress(): FleetProgress {
  return {
    connected: fleet?.connected ?? 0,
    ever: fleet?.everConnected ?? 0,
    logins: fleet?.loggedIn ?? 0,
  };
}

function readProgram(name: string): Program | Promise<Program> {
  return name.startsWith("kind:") ? kindNamed(name.slice(5)).program : importProgram(name);
}

function take(step: FleetStep): void {
  step.agents.forEach((n, i) => {
    const id = ids[n] as string;
    const shaper = shapers.get(n);
    if (step.do === "play") shaper?.play(step.fault, step.on);
    else if (step.do === "power off") {
      shaper?.vanish();
      fleet?.powerOff(id);
    } else {
      const agentToken = step.agentTokens?.[i];
      const relayToken = step.relayTokens?.[i];
      fleet?.powerOn(id, {
        ...(agentToken === undefined ? {} : { agentToken }),
        ...(relayToken === undefined ? {} : { relayToken }),
      });
    }
  });
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
    ...progress(),
    missing: fleet?.missing() ?? [],
    rssBytesPerAgent:
      size === 0 ? null : Math.max(0, Math.round((process.memoryUsage.rss() - rssBefore) / size)),
  });
}

process.on("message", (message: ToFleet) => {
  if (message.type === "start") start(message.order).catch(fail);
  else if (message.type === "report") report();
  else if (message.type === "step") take(message.step);
  else {
    fleet?.stop();
    setTimeout(() => process.exit(0), STOP_MS);
  }
});
process.on("disconnect", () => process.exit(0));
// Ctrl-C reaches the whole process group; the parent is the one that decides.
process.on("SIGINT", () => {});
