/** The parent's end of a process of a fleet. */
import { fork } from "node:child_process";
import { extname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { stopChild, watch, whenEnded } from "../base/processes.ts";
import type { FleetOrder, FleetStep, FromFleet, ToFleet } from "./fleet-messages.ts";

export type FleetShare = Extract<FromFleet, { type: "report" }>;

const STOP_GRACE_MS = 800;
/** Only for a fleet that hangs. */
const REPORT_LIMIT_MS = 10_000;
/**
 * With access to the garbage collector: memory is measured without garbage. A fleet produces little
 * of it, and the young generation left by its start is larger than all its devices.
 */
const NODE_FLAGS = [
  ...["--expose-gc", "--max-semi-space-size=1"],
  "--disable-warning=ExperimentalWarning", // Node erases the types of programs
  // A program runs as what it is, whatever the nearest package.json says.
  "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
];

export interface FleetChild {
  readonly pid: number;
  /** Resolves with its first progress report. */
  readonly started: Promise<unknown>;
  /** Resolves once each of its agents was online at some time. */
  readonly whole: Promise<unknown>;
  connected(): number;
  everConnected(): number;
  logins(): number;
  take(step: FleetStep): void;
  /** Null if the process has ended or hangs. */
  report(): Promise<FleetShare | null>;
  /** How the process ended; also after a `stop`. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Forks the process and starts connecting. `folder`: for files of boards' engines. */
export function startFleetChild(order: FleetOrder, folder: string): FleetChild {
  const program = join(import.meta.dirname, `fleet-process${extname(import.meta.filename)}`);
  const child = watch(
    fork(program, {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      execArgv: NODE_FLAGS,
      // Programs see the scenario's time zone and language, not the machine's.
      env: { ...process.env, TMPDIR: folder, TZ: order.timezone, LC_ALL: "en_US.UTF-8" },
    }),
  );
  const ended = whenEnded(child);
  let connected = 0;
  let ever = 0;
  let logins = 0;
  const waiting = new Set<(message: FromFleet) => void>();
  child.on("message", (message: FromFleet) => {
    ({ connected, ever, logins } = message);
    for (const hear of waiting) hear(message);
  });
  ended.then(() => {
    connected = 0;
  });
  function tell(message: ToFleet): void {
    if (child.connected) child.send(message, () => {});
  }
  function next<T>(take: (message: FromFleet) => T | undefined): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    function hear(message: FromFleet): void {
      const taken = take(message);
      if (taken === undefined) return;
      waiting.delete(hear);
      resolve(taken);
    }
    waiting.add(hear);
    return promise;
  }
  const { length: size } = order.agents;
  tell({ type: "start", order });
  return {
    pid: child.pid ?? 0,
    started: next(() => true),
    whole: next((message) => (message.ever >= size ? true : undefined)),
    connected: () => connected,
    everConnected: () => ever,
    logins: () => logins,
    take: (step) => tell({ type: "step", step }),
    report() {
      const answer = next((message) => (message.type === "report" ? message : undefined));
      tell({ type: "report" });
      const late = delay(REPORT_LIMIT_MS, null, { ref: false });
      return Promise.race([answer, ended.then(() => null), late]);
    },
    ended,
    stop: () => stopChild(child, () => tell({ type: "stop" }), STOP_GRACE_MS),
  };
}
