/**
 * The watchdog's own thread. It asks whether the run's thread still turns; if not, it reports
 * what that is doing and ends it, by the protocol of debuggers: nothing else reaches a thread whose
 * program does not return.
 */
import { type Debugger, Session } from "node:inspector";
import { parentPort, workerData } from "node:worker_threads";
import type { Watch } from "./watchdog.ts";

const { turns, ended, limitMs, programs } = workerData as Watch;
const ASKED_MS = 100;

/** What did not return was ended and reported, and the thread has not turned since. */
let wasTold = false;

const session = new Session();
const files = new Map<string, string>();
session.on("Debugger.scriptParsed", ({ params }) => files.set(params.scriptId, params.url));
session.on("Debugger.paused", ({ params }) => {
  const places = params.callFrames.map(({ location }: Debugger.CallFrame) => {
    const { scriptId, lineNumber, columnNumber = 0 } = location;
    return `${files.get(scriptId)}:${lineNumber + 1}:${columnNumber + 1}`;
  });
  const own = places.find((place) => programs.some((file) => place.startsWith(`${file}:`)));
  // Until the thread turns, it may also be receiving that report, which must not be ended.
  if (own !== undefined || !wasTold) {
    wasTold = true;
    Atomics.store(ended, 0, 1);
    parentPort?.postMessage(own ?? places[0] ?? "the run");
    session.post("Runtime.terminateExecution");
  }
  session.post("Debugger.resume");
});

/** CPU time of the process: one that is stopped, or has to wait for a core, is not stuck. */
const usedMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

let last = 0;
let since = Number.POSITIVE_INFINITY;
let wasStuck = false;
const asking = setInterval(() => {
  const now = Atomics.load(turns, 0);
  if (now !== last) {
    last = now;
    since = usedMs();
    if (wasStuck) session.disconnect();
    wasStuck = false;
    wasTold = false;
  } else if (usedMs() - since > (wasStuck ? ASKED_MS : limitMs)) {
    since = usedMs();
    if (!wasStuck) {
      session.connectToMainThread();
      session.post("Debugger.enable");
    }
    // Again and again: the next device may be stuck in the same place before the thread turns.
    wasStuck = true;
    session.post("Debugger.pause");
  }
}, ASKED_MS);
parentPort?.once("message", () => clearInterval(asking));
parentPort?.postMessage("watching");
