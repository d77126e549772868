/**
 * A process of a fleet: a forked child that starts on command and reports its progress. It ends
 * on command, and when its parent ends for any reason.
 */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Program } from "@blindrelay/agent-sdk";
import type { LinkPort, LogLevel } from "@blindrelay/agent-sdk/ports";
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import { Stream } from "../base/random-streams.ts";
import { kindNamed } from "../devices/kinds.ts";
import { ProgramErrors, thrownIn } from "../report/program-errors.ts";
import { PROGRAM } from "../scenario/schema.ts";
import { describeErrorOf } from "../virtual/program.ts";
import { programFile } from "./board-programs.ts";
import { type BoardMember, Boards } from "./boards.ts";
import { Fleet, type FleetMember } from "./fleet.ts";
import type { FleetOrder, FleetProgress, FleetStep, FromFleet, ToFleet } from "./fleet-messages.ts";
import { liveLinkPort } from "./link.ts";
import { Outages } from "./outages.ts";
import { Shaper } from "./shaped-link.ts";
import { stubbedProgram } from "./stubbed.ts";
import { fleetSuite } from "./suite.ts";
import { fleetTimer } from "./timer.ts";

const PROGRESS_MS = 100;
/** Time to send close frames. The parent does not wait longer. */
const STOP_MS = 300;

let fleet: Fleet | null = null;
let boards: Boards | null = null;
let rssBefore = 0;
const outages = new Outages();
let executions: Map<string, number> | null = null;
const uncaught = new ProgramErrors();
let files: readonly { file: string }[] = [];
const ids: string[] = [];
const shapers = new Map<number, Shaper>();

function tell(message: FromFleet): void {
  // The parent may end at any time; "disconnect" then ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function start(order: FleetOrder): Promise<void> {
  files = order.programs.map((file) => ({ file }));
  const isOnNode = order.programs.map((_, n) =>
    order.agents.some(({ program, engine }) => program === n && engine === undefined),
  );
  const programs = await Promise.all(
    order.programs.map((name, n) => (isOnNode[n] ? readProgram(name, order.stubs) : null)),
  );
  rssBefore = process.memoryUsage.rss();
  const link = liveLinkPort();
  const ports = {
    link,
    timer: fleetTimer(),
    random: (length: number) => randomBytes(length),
    suite: fleetSuite(),
    log: (_level: LogLevel, message: string, fields?: object) => {
      // A handler's caller hears of it.
      if (thrownIn(message) !== PROGRAM) return;
      uncaught.add({ example: `${message} ${JSON.stringify(fields ?? {})}` });
    },
  };
  const members: FleetMember[] = [];
  const boardMembers: BoardMember[] = [];
  order.agents.forEach(({ program, shape, engine, ...member }, n) => {
    ids.push(member.id);
    let own: LinkPort | undefined;
    if (shape !== undefined) {
      const shaper = new Shaper(link, shape, new Stream(`${order.seed}/${member.name}/net`));
      shapers.set(n, shaper);
      own = shaper;
    }
    if (engine === undefined) {
      const made = { ...member, program: programs[program] as Program };
      members.push(own === undefined ? made : { ...made, link: own });
    } else {
      const { startMs = 0 } = member;
      // A scenario with others is refused.
      const version = (member.version ?? "1") as AeadVersion;
      const file = programFile(order.programs[program] as string);
      boardMembers.push({ ...member, version, startMs, engine, program: file, link: own ?? link });
    }
  });
  // Not the order itself, which would keep all its agents in memory.
  const { url, connectionsPerSecond, connectingAtOnce, engines = {} } = order;
  if (order.countsExecutions) executions = new Map();
  const pace = { connectionsPerSecond, connectingAtOnce };
  fleet = new Fleet({ url, ...pace, ports, executions }, members);
  boards = new Boards({ url, engines }, boardMembers);
  fleet.start();
  await boards.start();
  setInterval(() => tell({ type: "progress", ...progress() }), PROGRESS_MS);
}

function progress(): FleetProgress {
  return {
    connected: (fleet?.connected ?? 0) + (boards?.connected ?? 0),
    ever: (fleet?.everConnected ?? 0) + (boards?.everConnected ?? 0),
    logins: (fleet?.loggedIn ?? 0) + (boards?.loggedIn ?? 0),
  };
}

async function readProgram(name: string, stubs: string | undefined): Promise<Program> {
  if (name.startsWith("kind:")) return kindNamed(name.slice(5)).program;
  return (await stubbedProgram(resolve(name), stubs)) ?? importProgram(name);
}

function take(step: FleetStep): void {
  for (const { agent, changed = {} } of step.targets) {
    const id = ids[agent] as string;
    const shaper = shapers.get(agent);
    const devices = boards?.has(id) ? boards : fleet;
    if (step.do === "play") shaper?.play(step.fault, step.on);
    else if (step.do === "power off") {
      outages.begin(agent);
      shaper?.vanish();
      devices?.powerOff(id);
    } else {
      const all = outages.end(agent, changed);
      if (all !== null) devices?.powerOn(id, all);
    }
  }
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

/** Of a program: nothing else in this process throws without catching it. */
const thrown = (error: unknown): string => describeErrorOf(files, error) as string;

/** The parent reads the reason from the end of our standard error. */
function fail(error: unknown): void {
  process.stderr.write(`${(error as Error)?.stack ?? error}\n`);
  process.exit(1);
}

function report(): void {
  globalThis.gc?.();
  tell({
    type: "report",
    ...progress(),
    executed: Object.fromEntries(executions ?? []),
    uncaught: uncaught.all(),
    missing: [...(fleet?.missing() ?? []), ...(boards?.missing() ?? [])],
    rssBytes: boards?.size === 0 ? Math.max(0, process.memoryUsage.rss() - rssBefore) : null,
  });
}

process.on("uncaughtException", (error) => {
  uncaught.add({ example: `the program failed: ${thrown(error)}` });
});
process.on("unhandledRejection", (error) => uncaught.rejected(thrown(error)));
process.on("message", (message: ToFleet) => {
  if (message.type === "start") start(message.order).catch(fail);
  else if (message.type === "report") report();
  else if (message.type === "step") take(message.step);
  else {
    fleet?.stop();
    boards?.stop();
    setTimeout(() => process.exit(0), STOP_MS);
  }
});
process.on("disconnect", () => process.exit(0));
process.on("exit", () => boards?.kill());
// Ctrl-C reaches the whole process group; the parent decides.
process.on("SIGINT", () => {});
