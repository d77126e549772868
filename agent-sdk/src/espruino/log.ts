/**
 * A board that keeps a log (core/log.ts), for the files that include this: those that accept
 * programs over the relay. It notices what no handler's caller is told: errors in the program's own
 * timers and events, and memory that ran out.
 *
 * [portable]
 */
import type { RestartReason } from "@blindrelay/protocol";
import type { AgentCore } from "../core/agent-core.ts";
import { reasonOf } from "../core/dispatch.ts";
import {
  answerLog,
  type DeviceLog,
  endLog,
  keepLine,
  LOG_METHOD,
  openLog,
  SMALL_LOG_BYTES,
} from "../core/log.ts";
import { boardStorage, useLog } from "./agent.ts";
import { storageFiles } from "./files.ts";
import { boardLog, boardTimer } from "./ports.ts";

declare const process: { on(event: "uncaughtException", fn: (thrown: unknown) => void): void };
declare const E: { on(event: "errorFlag", fn: (flags: readonly string[]) => void): void };

const STARVED = "it ran out of memory";

let kept: DeviceLog | null = null;
/** Whether memory ran out since the start. */
let isStarved = false;
let thrower: ((thrown: unknown) => void) | null = null;

/** The board will restart: what it says of that when it is back. */
export const tellEnd = (reason: RestartReason, text: string): void => {
  if (kept) endLog(kept, isStarved ? "memory" : reason, text);
};

/**
 * Memory ran out. Ends a trial first: the rest may find too little of it, as endLog may, so the
 * reason is kept in flash by itself, and once.
 */
export const tellStarved = (): void => {
  if (isStarved) return;
  isStarved = true;
  if (thrower) thrower(STARVED);
  if (!kept) return;
  kept.writtenAt = Infinity;
  // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
  boardStorage.write("log.last", "memory\n" + STARVED);
};

/** `fn` gets what is thrown outside of handlers, and that memory ran out. */
export const watchThrows = (fn: (thrown: unknown) => void): void => {
  thrower = fn;
};

/**
 * Where in the program something was thrown, as ` (program:3:12)`: the engine names the innermost
 * place first. "" if it is unknown, as for what is no Error.
 */
export const placeIn = (thrown: unknown): string => {
  const found = /program[.1]*:[0-9:]+/.exec(
    String(thrown && (thrown as { stack?: unknown }).stack),
  );
  // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
  return found ? " (" + found[0] + ")" : "";
};

useLog((config, bootCount) => {
  const log = openLog({
    bytes: config.log === undefined ? SMALL_LOG_BYTES : config.log,
    bootCount: bootCount,
    timer: boardTimer,
    storage: storageFiles(boardStorage),
    secrets: [config.relay_token, config.agent_token].concat(
      config.wifi === undefined ? [] : [config.wifi.password],
    ),
  });
  kept = log;
  // Not serveLog and keepingLog: a function that these made would keep that module in memory.
  return {
    log: (level, message, fields, thrown) => {
      keepLine(log, level, message + placeIn(thrown), fields);
      boardLog(level, message, fields);
    },
    serve: (core: AgentCore) => {
      log.core = core;
      core.dispatcher.add(LOG_METHOD, (params, context) =>
        answerLog(log, params, context.sid, core.maxPlaintext),
      );
    },
  };
});

E.on("errorFlag", (flags) => {
  if (flags.indexOf("MEMORY") >= 0) tellStarved();
});

process.on("uncaughtException", (thrown) => {
  if (thrower) thrower(thrown);
  // Another timer of the same pass that catches an error takes this one's value.
  const reason = thrown === undefined ? "unknown" : reasonOf(thrown);
  // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
  if (kept) keepLine(kept, "error", "uncaught: " + reason + placeIn(thrown), undefined);
  // For the console.
  throw thrown;
});
