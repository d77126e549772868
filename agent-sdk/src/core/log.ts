/**
 * `system.log` (section 2, "Inside the packet"): the latest lines of a device's log in a ring of
 * bounded size, for callers who ask and sessions that follow; and why the device restarted, which
 * outlives it in a file. Secrets that the device knows, and whatever looks like a token, are masked
 * before a line is kept.
 *
 * The file holds `<reason>\n<text of the last failure>`. It is written when the device ends on
 * purpose or sees its end coming, and at a failure, at most every ten minutes: flash wears out. So
 * the next start finds "reset" with the text of a failure, or nothing at all, after a power cut.
 *
 * [portable]
 */
import type { LogLine, RestartReason } from "@blindrelay/protocol";
import { encodeJson, isObject, own } from "@blindrelay/protocol/crypto";
import type { Log, LogLevel, StoragePort, TimerPort } from "../ports.ts";
import type { CallContext } from "./dispatch.ts";

export const LOG_METHOD = "system.log";

/** Bytes of the ring on a small device, and on one with memory to spare. */
export const SMALL_LOG_BYTES = 1024;
export const LARGE_LOG_BYTES = 65536;

const LOG_FILE = "log.last";
/** What the file holds while there is nothing to say: after a power cut, it is what remains. */
const FORGOTTEN = "reset\n";
const MAX_LOG_LINES = 100;
/** A line may take an eighth of the ring, but no more than this. */
const MAX_LINE_TEXT = 2000;
/** Between two writes of a failure. */
const FAILURE_WRITE_MS = 600000;
/** Around the answer and its id, or around a notification. */
const AROUND_LINES = 96;
/** When lines for a session could not be sent. */
const TELL_AGAIN_MS = 5000;
const MASKED_PREFIXES = ["acct_", "agt_", "sess_", "login_", "e2e_", "key_", "push_"];
/** A token has 49 of them after its prefix; a cut one is masked too. */
const TOKEN_DIGITS = 20;
const MASKED = "***";

export interface LogOptions {
  /** Of the ring. */
  readonly bytes: number;
  readonly bootCount: number;
  readonly timer: TimerPort;
  /** Where the reason of a restart is kept; null: nowhere. */
  readonly storage: StoragePort | null;
  readonly secrets: readonly string[];
}

/** What a log needs of its agent's core. */
export interface LogCore {
  readonly maxPlaintext: number;
  readonly dispatcher: {
    add(method: string, handler: (params: unknown, context: CallContext) => unknown): void;
  };
  readonly sessions: { held(): readonly string[] };
  notify(sid: string, text: string): boolean;
}

/** One device's log, from a start to its end. */
export interface DeviceLog {
  readonly options: LogOptions;
  readonly bornAt: number;
  readonly restart: { readonly reason: string; readonly text: string };
  /** `<n> <at_ms> <level> <text>`, the oldest first: on a board an object costs more. */
  lines: string[];
  /** Characters in `lines`. */
  size: number;
  /** Of the latest line. */
  last: number;
  dropped: number;
  /** Of the latest failure. */
  failure: string;
  /** When a failure was written; Infinity: none will be, as the end has been told. */
  writtenAt: number | null;
  core: LogCore | null;
  /** Sessions that follow and, at the same index, the latest line that each has. */
  followers: string[];
  reached: number[];
  timer: unknown;
}

const END_REASONS = ["reset", "stop", "throw", "memory", "push"];

/** Anything but what `write` wrote means that a power cut came between. */
const readRestart = (text: string | null): { reason: string; text: string } => {
  if (text === null) return { reason: "first", text: "" };
  const end = text.indexOf("\n");
  const reason = text.substring(0, end);
  return END_REASONS.indexOf(reason) < 0
    ? { reason: "reset", text: "" }
    : { reason: reason, text: text.substring(end + 1) };
};

/**
 * Call it once for every start, before the core is constructed. Reads why the device restarted, and
 * forgets it in flash.
 */
export const openLog = (options: LogOptions): DeviceLog => {
  const storage = options.storage;
  let restart = readRestart(null);
  try {
    const text = storage === null ? null : storage.read(LOG_FILE);
    restart = readRestart(text);
    if (storage !== null && text !== FORGOTTEN) storage.write(LOG_FILE, FORGOTTEN);
  } catch {
    // A log must not keep a device from its work.
  }
  return {
    options: options,
    bornAt: options.timer.now(),
    restart: restart,
    lines: [],
    size: 0,
    last: 0,
    dropped: 0,
    failure: "",
    writtenAt: null,
    core: null,
    followers: [],
    reached: [],
    timer: null,
  };
};

const isTokenDigit = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);

/** Espruino's `split` by a text that is longer than this one gives nothing. */
const withoutSecret = (text: string, secret: string): string =>
  secret === "" || text.indexOf(secret) < 0 ? text : text.split(secret).join(MASKED);

/** How many digits of a token a text begins with; 0 if they are too few for one. */
const tokenLength = (text: string): number => {
  let end = 0;
  // At the end charCodeAt answers NaN, which is no digit.
  while (isTokenDigit(text.charCodeAt(end))) end++;
  return end < TOKEN_DIGITS ? 0 : end;
};

const maskSecrets = (given: string, secrets: readonly string[]): string => {
  let text = given;
  for (const secret of secrets) text = withoutSecret(text, secret);
  for (const prefix of MASKED_PREFIXES) {
    // A relay's text may be nothing but prefixes: on V8 a rest is a view, and no copy for each.
    let done = "";
    let at = text.indexOf(prefix);
    while (at >= 0) {
      at += prefix.length;
      const rest = text.substring(at);
      const length = tokenLength(rest);
      done += text.substring(0, at) + (length > 0 ? MASKED : "");
      text = rest.substring(length);
      at = text.indexOf(prefix);
    }
    text = done + text;
  }
  return text;
};

const fieldsText = (fields: unknown): string => {
  if (fields === undefined) return "";
  try {
    // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
    return " " + encodeJson(fields);
  } catch {
    return "";
  }
};

const maxText = (log: DeviceLog): number =>
  Math.min(MAX_LINE_TEXT, Math.floor(log.options.bytes / 8));

const writeEnd = (log: DeviceLog, reason: string): void => {
  const storage = log.options.storage;
  if (storage === null) return;
  try {
    // biome-ignore lint/style/useTemplate: see fieldsText.
    storage.write(LOG_FILE, reason + "\n" + log.failure);
  } catch {
    // No space in flash.
  }
};

/**
 * The device ends, or will not last: what the next start says of it. `text`: of a failure; "" keeps
 * the last one.
 */
export const endLog = (log: DeviceLog, reason: RestartReason, text: string): void => {
  if (text !== "") log.failure = maskSecrets(text, log.options.secrets).substring(0, maxText(log));
  writeEnd(log, reason);
  log.writtenAt = Infinity;
  log.followers = [];
  if (log.timer !== null) log.options.timer.clear(log.timer);
  log.timer = null;
};

const readLine = (entry: string): LogLine => {
  const parts = entry.split(" ");
  const head = 3 + parts[0]!.length + parts[1]!.length + parts[2]!.length;
  return {
    n: Number(parts[0]),
    at_ms: Number(parts[1]),
    level: parts[2] as string,
    text: entry.substring(head),
  };
};

/** Lines as JSON texts, at most `count` of them in `room` characters. */
interface Page {
  readonly lines: LogLine[];
  /** The last line of the page. */
  readonly last: number;
}

/** A line that no packet would contain is cut until one does. */
const fitLine = (line: LogLine, room: number): LogLine => {
  let cut = line;
  while (cut.text !== "" && (encodeJson(cut) as string).length > room) {
    const text = cut.text.substring(0, Math.floor(cut.text.length / 2));
    cut = { n: cut.n, at_ms: cut.at_ms, level: cut.level, text: text };
  }
  return cut;
};

/** `after`: the first lines after that one; null: the latest. */
const linesFor = (log: DeviceLog, after: number | null, count: number, room: number): Page => {
  const lines = log.lines;
  const first = log.last - lines.length + 1;
  let page: LogLine[] = [];
  let left = room;
  let at = after === null ? lines.length - 1 : Math.max(0, after + 1 - first);
  while (at >= 0 && at < lines.length && page.length < count) {
    let line = readLine(lines[at] as string);
    if (page.length === 0) line = fitLine(line, left);
    left -= (encodeJson(line) as string).length + 1;
    if (left < 0 && page.length > 0) break;
    page = after === null ? [line].concat(page) : page.concat([line]);
    at += after === null ? -1 : 1;
  }
  const end = page[page.length - 1];
  return { lines: page, last: end === undefined ? log.last : end.n };
};

const addFollower = (log: DeviceLog, sid: string, reached: number): void => {
  const index = log.followers.indexOf(sid);
  if (index >= 0) {
    log.reached[index] = reached;
    return;
  }
  log.followers.push(sid);
  log.reached.push(reached);
};

const dropFollower = (log: DeviceLog, sid: string): void => {
  const index = log.followers.indexOf(sid);
  if (index < 0) return;
  log.followers.splice(index, 1);
  log.reached.splice(index, 1);
};

/** Sends what each session that follows does not have yet; false if something could not be sent. */
const tellFollowers = (log: DeviceLog): boolean => {
  const core = log.core as LogCore;
  const held = core.sessions.held();
  const room = core.maxPlaintext - AROUND_LINES;
  let unsent = false;
  for (const sid of log.followers.concat([])) {
    if (held.indexOf(sid) < 0) {
      dropFollower(log, sid);
      continue;
    }
    const index = log.followers.indexOf(sid);
    while ((log.reached[index] as number) < log.last) {
      const page = linesFor(log, log.reached[index] as number, MAX_LOG_LINES, room);
      const params = encodeJson({ lines: page.lines });
      // biome-ignore lint/style/useTemplate: see fieldsText.
      const text = '{"jsonrpc":"2.0","method":"system.logged","params":' + params + "}";
      if (!core.notify(sid, text)) {
        unsent = true;
        break;
      }
      log.reached[index] = page.last;
    }
  }
  return !unsent;
};

/** Not at once: a line may be logged in the middle of the core's work. */
const tellLater = (log: DeviceLog, ms: number): void => {
  if (log.timer !== null) return;
  log.timer = log.options.timer.set(ms, () => {
    log.timer = null;
    if (!tellFollowers(log)) tellLater(log, TELL_AGAIN_MS);
  });
};

/** Keeps a line; `debug` is not kept. Never throws. */
export const keepLine = (
  log: DeviceLog,
  level: LogLevel,
  message: string,
  fields: unknown,
): void => {
  if (level === "debug") return;
  // biome-ignore lint/style/useTemplate: see fieldsText.
  const whole = maskSecrets("" + message + fieldsText(fields), log.options.secrets);
  const text = whole.substring(0, maxText(log));
  const now = log.options.timer.now();
  log.last++;
  // biome-ignore lint/style/useTemplate: see fieldsText.
  const entry = log.last + " " + Math.floor(now - log.bornAt) + " " + level + " " + text;
  log.lines = log.lines.concat([entry]);
  log.size += entry.length;
  while (log.size > log.options.bytes) {
    log.size -= (log.lines.shift() as string).length;
    log.dropped++;
  }
  if (level === "error") {
    log.failure = text;
    if (log.writtenAt === null || now - log.writtenAt >= FAILURE_WRITE_MS) {
      log.writtenAt = now;
      writeEnd(log, "reset");
    }
  }
  if (log.followers.length > 0) tellLater(log, 0);
};

const isLineNumber = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value % 1 === 0;

/** Answers `system.log`. Throws an Error for params of another form. */
export const answerLog = (
  log: DeviceLog,
  params: unknown,
  sid: string,
  maxPlaintext: number,
): object => {
  const asked = isObject(params) ? params : {};
  const after = own(asked, "after");
  const lines = own(asked, "lines");
  const follows = own(asked, "follow");
  if (after !== undefined && !isLineNumber(after)) throw new Error("after: the number of a line");
  if (lines !== undefined && !(isLineNumber(lines) && lines > 0))
    throw new Error("lines: a whole number from 1");
  if (follows !== undefined && follows !== true && follows !== false)
    throw new Error("follow: true or false");
  const rest = { boot: log.options.bootCount, restart: log.restart, dropped: log.dropped };
  const room = maxPlaintext - AROUND_LINES - (encodeJson(rest) as string).length;
  const count = lines === undefined ? MAX_LOG_LINES : Math.min(lines, MAX_LOG_LINES);
  const page = linesFor(log, after === undefined ? null : after, count, room);
  if (follows === false) dropFollower(log, sid);
  if (follows === true) {
    addFollower(log, sid, page.last);
    // Also to forget those whose sessions are over.
    tellLater(log, 0);
  }
  return Object.assign({ lines: page.lines }, rest);
};

/** Adds `system.log` to an agent; call it before the program runs. */
export const serveLog = (log: DeviceLog, core: LogCore): void => {
  log.core = core;
  core.dispatcher.add(LOG_METHOD, (params, context) =>
    answerLog(log, params, context.sid, core.maxPlaintext),
  );
};

/** A log that also keeps its lines. `place`: where something was thrown, "" if that is unknown. */
export const keepingLog =
  (kept: DeviceLog, port: Log, place: (thrown: unknown) => string): Log =>
  (level, message, fields, thrown) => {
    keepLine(kept, level, message + place(thrown), fields);
    port(level, message, fields, thrown);
  };
