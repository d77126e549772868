/**
 * `blindrelay flash PORT --program FILE`: writes the SDK and a device program to a board, and
 * checks that it is online.
 */

import { createHash } from "node:crypto";
import { watch } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import {
  type Board,
  type BoardProgram,
  type EspruinoRepl,
  FirstError,
  type FittedProgram,
  type FlashReport,
  flashEspruino,
  inSource,
  type Notice,
  readBoard,
  type SourceMap,
  sdkFileOf,
  startEspruino,
} from "@blindrelay/agent-sdk/board";
import { loadDialect } from "@blindrelay/agent-sdk/dialect";
import { EXIT, Failure } from "@blindrelay/protocol/command-line";
import { Option } from "commander";
import type { Command } from "../base/command.ts";
import { interrupted, rejectOnInterrupt } from "../base/interrupted.ts";
import { oneLine, printJson, printStatus, printText } from "../base/output.ts";
import { NO_WATCHDOG } from "../base/watchdog.ts";
import { keepBuild, shownPath } from "../config/kept-builds.ts";
import type { Settings } from "../config/settings.ts";
import { flashModdable, type ModdableOptions } from "../flash/moddable.ts";
import { fittedTo } from "../flash/modules.ts";
import { type Online, waitUntilOnline } from "../flash/online.ts";
import type { carryOwnLine } from "../flash/own-line.ts";
import { readProgram } from "../flash/program.ts";
import { ProgressLine } from "../flash/progress.ts";
import { espruinoSdk } from "../flash/sdk.ts";
import type { PortFlags } from "../repl/port.ts";
import { ADDRESS_FORMS } from "../serial/address.ts";
import { withBaud, withConsole } from "./board.ts";
import type { Context } from "./context.ts";
import { seconds } from "./number-flags.ts";
import { version } from "./version-flags.ts";

interface FlashFlags extends PortFlags, Omit<ModdableOptions, "port"> {
  readonly modules?: string;
  readonly target: "espruino" | "moddable";
  readonly save: boolean;
  readonly check: boolean;
  readonly slowCrypto?: boolean;
  readonly timeout: number;
}

/** Editors write a file in several steps. */
const SETTLE_MS = 200;
/** What must be free for an agent to open a session and answer, on a board of 32 bits. */
const NEEDED_VARIABLES = 400;
/** For a board that may be out of memory to answer. */
const MEMORY_MS = 10_000;
/** Lines of a failing start that are shown. */
const MAX_LINES = 20;

/** Whether the console that flashed it is on the UART that its agent takes over. */
const isOnOwnLine = ({ uart, console }: Pick<Board, "uart" | "console">): boolean =>
  uart !== null && uart.port === console;

const DEBUG_BUILD =
  ". This is a debug build of Espruino, which stops at such a check: build it with RELEASE=1";

/** A Failure that says so if the reason is the program's use of memory; else the one given. */
const withMemory = async (board: EspruinoRepl, failure: Failure): Promise<Failure> => {
  const free = await board
    .attach(true)
    .then(() => board.evaluate("process.memory().free", MEMORY_MS))
    .catch(() => null); // no console is left, or no memory for an answer
  if (typeof free !== "number" || free >= NEEDED_VARIABLES) return failure;
  return new Failure(
    "device",
    `the agent did not come online: the program leaves ${free} variables, about ${NEEDED_VARIABLES} are needed. Give it fewer functions and shorter names, or use a board with more (\`blindrelay check FILE --board NAME\` estimates it)`,
    failure,
  );
};

/** Waits for the agent; an error reported by the board ends the wait. */
const checkOnline = async (
  board: EspruinoRepl,
  settings: Settings,
  { agentId, uart }: Board,
  limitMs: number,
  map: SourceMap,
  carry: typeof carryOwnLine | null,
): Promise<Online> => {
  const abort = new AbortController();
  const onOwnLine = carry !== null;
  const letGo = carry?.(board.port, settings.socketUrl()) ?? null;
  const hint =
    uart === null
      ? "does the board have a network, and can it reach the relay's address? `blindrelay monitor` shows its output"
      : onOwnLine
        ? "is its UART set up with the right pins and rate?"
        : `does \`blindrelay bridge PORT --mode sealed\` run at the other end of ${uart.port}?`;
  let told = 0;
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const fail = (why: string): void =>
    reject(new Failure("device", `the board could not start it: ${why}`));
  const error = new FirstError(fail);
  board.onLine = (said) => {
    const line = inSource(said, map, shownPath);
    // On its own line its output includes the login.
    if (!onOwnLine && told++ < MAX_LINES) printStatus(`board: ${line}`);
    if (line.startsWith("ASSERT(")) fail(`${line}${DEBUG_BUILD}`);
    else error.receive(line);
  };
  board.onGone = reject;
  try {
    const online = waitUntilOnline(settings, agentId as string, limitMs, abort.signal, hint);
    return await Promise.race([online, broken]);
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== EXIT.unreachable || onOwnLine)
      throw error;
    throw await withMemory(board, error);
  } finally {
    abort.abort();
    error.stop();
    await letGo?.();
    board.onLine = () => undefined;
    board.onGone = () => undefined;
  }
};

const tellReport = (report: FlashReport, dryRun: boolean): void => {
  const { board, version } = report.board;
  printStatus(`${board} ${version}, ${report.board.freeBytes} bytes free in Storage`);
  for (const { name, bytes, unchanged } of report.files) {
    const what = unchanged
      ? "is already there"
      : dryRun
        ? "would be written"
        : "written, read back";
    printStatus(`${name}: ${bytes} bytes, ${what}`);
  }
};

const keepFlashed = (
  { buildsDir }: Settings,
  { code, map }: FittedProgram,
  given: Parameters<typeof keepBuild>[3],
): void => {
  const sha256 = createHash("sha256").update(code, "latin1").digest("hex");
  keepBuild(buildsDir, sha256.slice(0, 16), map, given);
};

/** Rejects with a Failure (interrupted) at a signal, which says what it leaves on the board. */
const flashOnce = (
  board: EspruinoRepl,
  settings: Settings,
  program: BoardProgram,
  flags: FlashFlags,
): Promise<void> => {
  let left = "nothing was written";
  const stopped = rejectOnInterrupt(() => left);
  const flashing = flash(board, settings, program, flags, (now) => {
    left = now;
  });
  return Promise.race([flashing, stopped]);
};

const flash = async (
  board: EspruinoRepl,
  settings: Settings,
  program: BoardProgram,
  flags: FlashFlags,
  leaves: (what: string) => void,
): Promise<void> => {
  const dryRun = flags.dryRun ?? false;
  const line = new ProgressLine();
  const notice = (text: string): void => {
    line.clear();
    printStatus(text);
  };
  await board.attach(true);
  // First, so that a missing secret does not look like a missing network.
  const before = await readBoard(board);
  if (before.agentId !== null && flags.check && !dryRun) settings.secretOf(before.agentId);
  const fit = fittedTo(program, flags.modules);
  const made: FittedProgram[] = [];
  const options = {
    sdk: await espruinoSdk(sdkFileOf(before)),
    program: async (found: Board, tell: Notice) => {
      const fitted = await fit(found, tell);
      made.push(fitted);
      return fitted;
    },
    dialect: await loadDialect(),
    firmwareVersion: flags.firmwareVersion,
    save: flags.save,
    dryRun,
    slowCrypto: flags.slowCrypto ?? false,
  };
  // Loaded before the board starts, because it sends at once and does not wait for a module.
  const carry = isOnOwnLine(before) ? (await import("../flash/own-line.ts")).carryOwnLine : null;
  if (!dryRun) leaves("the board may be stopped, or half-written: repeat the command");
  const report = await flashEspruino(board, options, line.show, notice).finally(() => line.clear());
  tellReport(report, dryRun);
  const agentId = report.board.agentId as string;
  const isMute = isOnOwnLine(before) && before.uart?.baud !== flags.baud;
  let online: Online | null = null;
  const fitted = made[0] as FittedProgram;
  if (!dryRun) {
    keepFlashed(settings, fitted, { agentId, port: board.port.name });
    await startEspruino(board, options, before.push);
    leaves("it was flashed and started; whether it is online was not checked");
    if (isMute)
      printStatus(
        `its line now runs at ${before.uart?.baud} baud; whether it is online was not checked`,
      );
    else if (flags.check)
      online = await checkOnline(board, settings, before, flags.timeout * 1000, fitted.map, carry);
  }
  if (flags.json === true) {
    const { files } = report;
    const { board: name, version } = report.board;
    printJson({
      agent_id: agentId,
      board: name,
      version,
      files,
      dry_run: dryRun,
      saved: flags.save && !dryRun,
      online: online !== null,
      ...(online === null ? {} : { info: online.info }),
    });
  } else if (dryRun) printText(`${agentId}: nothing was written`);
  else if (online === null) printText(`${agentId} was flashed and started`);
  else printText(`${agentId} is online: ${oneLine(online.runtime ?? "an unknown runtime")}`);
  if (online?.isGuarded === false) printStatus(`${agentId} ${NO_WATCHDOG}`);
  if (!dryRun && isOnOwnLine(before)) {
    printStatus(
      `its console has left this line: next, blindrelay bridge ${board.port.name} --mode sealed`,
    );
  }
};

/**
 * Flashes now and at every change of the file, until Ctrl-C. A failure is reported, and the next
 * change awaited.
 */
const flashWatching = async (
  port: string,
  settings: Settings,
  flags: FlashFlags,
  tellFailure: (error: unknown) => void,
): Promise<void> => {
  const file = resolve(flags.program);
  let changed = true;
  let wake: () => void = () => undefined;
  // Watches the folder, because editors replace the file with a new one.
  const watcher = watch(dirname(file), (_event, name) => {
    if (name !== basename(file)) return;
    changed = true;
    wake();
  });
  let ended = false;
  interrupted().then(() => {
    ended = true;
    wake();
  });
  try {
    while (!ended) {
      if (changed) {
        changed = false;
        try {
          const program = await readProgram(file);
          await withConsole(port, flags, (board) => flashOnce(board, settings, program, flags));
        } catch (error) {
          tellFailure(error);
        }
        if (!ended) printStatus(`watching ${flags.program}`);
      }
      if (!changed && !ended) {
        await new Promise<void>((resolvePromise) => {
          wake = resolvePromise;
        });
        if (!ended) await wait(SETTLE_MS);
      }
    }
  } finally {
    watcher.close();
  }
};

export const addFlash = (
  cli: Command,
  context: Context,
  tellFailure: (error: unknown) => void,
): void => {
  withBaud(
    cli
      .command("flash")
      .description("write the SDK and a device program to a board, and wait until it is online")
      .argument("[port]", ADDRESS_FORMS),
  )
    .requiredOption("--program <file>", "export default (agent) => { agent.handle(…) }; .js or .ts")
    .option("--modules <dir>", "where modules are that the program requires and the board lacks")
    .option(
      "--firmware-version <version>",
      "the program's version (SemVer), shown by the relay",
      version,
    )
    .addOption(
      new Option("--target <runtime>", "what runs on the board")
        .choices(["espruino", "moddable"])
        .default("espruino"),
    )
    .option("--dry-run", "check the board and the program, but write nothing")
    .option("--watch", "flash again whenever the program changes, until Ctrl-C")
    .option("--save", "start it at every power-up (.bootcde)", true)
    .option("--no-save", "start it only now: it does not survive a power cut")
    .option("--no-check", "do not wait until it is online")
    .option("--timeout <seconds>", "until it is online", seconds(3_600), 60)
    .option("--slow-crypto", "accept a board without native SHA-256")
    .option("--out <dir>", "with --target moddable: the project's folder")
    .option("--config <dir>", "with --target moddable: the folder that `provision --out` wrote")
    .option("--platform <name>", "with --target moddable: as mcconfig's -p, such as esp32")
    .option("--json", "print one JSON document each time the board is flashed")
    .example(`
  blindrelay provision /dev/ttyUSB0 --id pump-7
  blindrelay flash /dev/ttyUSB0 --program pump.js
  blindrelay flash --target moddable --program pump.js --config ./pump-7 --out ./pump-project

Files that the board already has are not written again. Written files are verified (length and CRC-32).
The board joins the Wi-Fi of provision --wifi, or its network in another way. A board without a network
(provision --serial) needs a bridge; if its console shares the UART, this command acts as the bridge until
the board is online.
Exit codes: 2 usage, or a program that Espruino would not run as written; 4 it did not come online;
5 refused; 7 device or port (no permission, nothing answers, another runtime, no SHA-256, no space,
unplugged).`)
    .action(async (port: string | undefined, flags: FlashFlags) => {
      const settings = context.settings();
      if (flags.target === "moddable") {
        await flashModdable({ ...flags, port });
        return;
      }
      if (port === undefined)
        throw new Failure("usage", "which port? `blindrelay devices` lists them");
      if (flags.watch === true) {
        await flashWatching(port, settings, flags, tellFailure);
        return;
      }
      const read = await readProgram(flags.program);
      await withConsole(port, flags, (board) => flashOnce(board, settings, read, flags));
    });
};
