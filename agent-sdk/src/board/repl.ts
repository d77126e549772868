/**
 * Queries an Espruino through its prompt: one line at a time, answered by a marked line.
 *
 * Input is echoed, unless the line starts with 0x10. Ctrl-C ends what is running and clears the
 * line; twice within 5 s on an empty line, it ends Espruino's Linux build, so a letter is sent
 * before it. That build also holds its output back until more is typed: so while waiting, Ctrl-U is
 * typed, which changes nothing on an empty line. A board with a full buffer sends XOFF and later
 * XON; what is written in between is lost.
 */
import { BoardFailure } from "./failure.ts";
import { type Port, wait } from "./port.ts";
import { textOf } from "./said.ts";

const XON = 0x11;
const XOFF = 0x13;
const NO_ECHO = "\x10";
const DELETE_LINE = "\x15";
/** So that Ctrl-C is not typed on an empty line. */
const PREPARE_BREAK = "x";
const BREAK = "\x03";
/**
 * Before every line: on a busy board Ctrl-C overtakes the letter that was typed before it, which is
 * then on the line.
 */
const ON_CLEAR_LINE = DELETE_LINE + NO_ECHO;
/** Small enough that XOFF is obeyed before a board's buffer of 256 bytes is full. */
const SLICE_BYTES = 64;
const NUDGE_MS = 30;
const FIRST_PATIENCE_MS = 2_500;
const TRIES = 3;
const MAX_HELD = 65_536;

export interface ReplLimits {
  /** Limit for the board's first answer. */
  readonly attachMs: number;
  /** Limit for the answer to one line. */
  readonly answerMs: number;
  /** How long an XOFF may last. */
  readonly xoffMs: number;
  /** Pause around Ctrl-C: input that follows too closely would be cleared with the old line. */
  readonly settleMs: number;
}

export const REPL_LIMITS: ReplLimits = {
  attachMs: 8_000,
  answerMs: 15_000,
  xoffMs: 15_000,
  settleMs: 250,
};

interface Asked {
  readonly id: number;
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
  /** Set if the board reported an error and no marked answer has arrived yet. */
  complaint: ReturnType<typeof setTimeout> | null;
}

/**
 * A board may repeat what was typed to it, or is kept on it. To be called before a text is cut:
 * half a secret is not recognized.
 */
const withoutSecrets = (said: string): string => said.replace(/[\w+/=-]{20,}/g, "…");

/** The board threw while evaluating the input. */
export class BoardError extends BoardFailure {
  /** What it threw, without what may be a secret. */
  readonly said: string;

  constructor(port: string, thrown: string) {
    const said = withoutSecrets(thrown);
    super("refused", `${port}: the board failed: ${said}`);
    this.said = said;
  }
}

/** The board did not understand the input, or its answer arrived damaged. */
class Damage extends Error {}

const COMPLAINT_GRACE_MS = 1_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what Espruino puts before a line of output.
const PROMPT = /^(\r|\x1b\[J|>)*/;
const ANSWER = /<br:(\d+):(ok|no)>(.*)/;

export class EspruinoRepl {
  readonly port: Port;
  /** Called with complete lines of the board's output that are not answers. */
  onLine: (line: string) => void = () => undefined;
  private readonly limits: ReplLimits;
  private held = "";
  private heard = "";
  private asked: Asked | null = null;
  // Random, because the answer to an earlier command's query may still arrive.
  private nextId = Math.floor(Math.random() * 1_000_000);
  private stopped: (() => void) | null = null;
  private going: Promise<void> = Promise.resolve();
  private gone: BoardFailure | null = null;

  constructor(port: Port, limits: ReplLimits = REPL_LIMITS) {
    this.port = port;
    this.limits = limits;
    port.events = {
      received: (bytes) => this.receive(bytes),
      closed: (reason) => this.lose(reason),
    };
  }

  /** All input before the board was recognized, at most 64 KiB. */
  get firstWords(): string {
    return this.heard;
  }

  /**
   * Makes the board answer: first without disturbing a running program, then, if `mayBreak`, with
   * Ctrl-C. Rejects with a Failure (device) that says what was found instead.
   */
  async attach(mayBreak: boolean): Promise<void> {
    let patient = true;
    let deadline = performance.now() + this.limits.attachMs;
    for (let attempt = 0; ; attempt++) {
      if (performance.now() >= deadline) {
        // It answers, but a line arrived damaged each time: a slow console gets twice as long.
        if (!patient || !isEspruino(this.heard)) throw this.unknown();
        patient = false;
        deadline += this.limits.attachMs;
      }
      if (attempt > 0 && mayBreak) {
        await this.interrupt();
      }
      const left = deadline - performance.now();
      const answered = await this.ask("1", Math.max(100, Math.min(left, 1_500)), true).then(
        () => true,
        (error) => {
          if (this.gone !== null) throw error;
          return false;
        },
      );
      if (answered) {
        this.heard = "";
        return;
      }
    }
  }

  /**
   * The value of an expression on the board, as JSON; it may be evaluated twice. Rejects with a
   * BoardError if it throws there, and with a Failure (device) if no complete answer arrives.
   */
  async evaluate(expression: string, limitMs: number = this.limits.answerMs): Promise<unknown> {
    for (let tries = 1; ; tries++) {
      try {
        const text = await this.ask(`JSON.stringify(${expression})`, limitMs, false);
        return text === "undefined" ? undefined : parseAnswer(text);
      } catch (error) {
        // A line that lost a character in transit may also have thrown.
        const mayBeBroken = error instanceof BoardError || error instanceof Damage;
        if (mayBeBroken && tries < TRIES) continue;
        throw error instanceof Damage ? this.damaged(error.message) : error;
      }
    }
  }

  /** Types a line that gives no answer, such as `load()`. */
  async type(line: string): Promise<void> {
    await this.write(`${ON_CLEAR_LINE}${line}\n`);
  }

  /** Types like a user, with echo. */
  async write(text: string): Promise<void> {
    const bytes = Uint8Array.from(text, (byte) => byte.charCodeAt(0));
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      await this.mayGo();
      if (this.gone !== null) throw this.gone;
      await this.port.write(bytes.subarray(at, at + SLICE_BYTES)).catch((error) => {
        throw this.gone ?? error;
      });
    }
  }

  /** What is asked ends at once: nobody waits for a board that was left. */
  close(): Promise<void> {
    const closed = this.port.close();
    this.gone ??= new BoardFailure("gone", `${this.port.name} was closed`);
    this.resume();
    this.settle(this.gone);
    return closed;
  }

  private async ask(expression: string, limitMs: number, first: boolean): Promise<string> {
    if (this.gone !== null) throw this.gone;
    const id = this.nextId++;
    // In two parts, so that an echo of this line is not mistaken for its answer.
    const line =
      `try{print("<"+"br:${id}:ok>"+(${expression}))}` +
      `catch(e){print("<"+"br:${id}:no>"+(e.message||e))}`;
    const answer = new Promise<string>((resolve, reject) => {
      this.asked = { id, resolve, reject, complaint: null };
    });
    answer.catch(() => undefined);
    const timer = setTimeout(() => this.settle(this.silent(limitMs)), limitMs);
    try {
      await this.write(`${first ? `${DELETE_LINE}\n` : ""}${ON_CLEAR_LINE}${line}\n`);
      // An XOFF that arrives after everything was written is only noticed here.
      this.keepAsking(id, `${ON_CLEAR_LINE}${line}\n`).catch((error) => {
        if (this.asked?.id === id) this.settle(error);
      });
      return await answer;
    } finally {
      clearTimeout(timer);
      if (this.asked?.id === id) this.asked = null;
    }
  }

  /**
   * Nudges the board for an answer that may be held back, and repeats the line if a character must
   * have been lost; the second time with Ctrl-C, because that may have been a bracket. Rejects when
   * the port is gone or accepts no more.
   */
  private async keepAsking(id: number, line: string): Promise<void> {
    let patienceMs = FIRST_PATIENCE_MS;
    for (let tries = 0; ; tries++) {
      const askedAt = performance.now();
      for (let gapMs = NUDGE_MS; performance.now() - askedAt < patienceMs; gapMs *= 1.5) {
        await wait(gapMs);
        if (this.asked?.id !== id) return;
        await this.write(DELETE_LINE);
      }
      if (tries > 0) await this.interrupt();
      if (this.asked?.id !== id) return;
      await this.write(line);
      patienceMs *= 2;
    }
  }

  /** Ctrl-C, which ends what is running and clears the line. */
  async interrupt(): Promise<void> {
    await this.write(PREPARE_BREAK);
    await wait(this.limits.settleMs);
    await this.write(BREAK);
    await wait(this.limits.settleMs);
  }

  private receive(bytes: Uint8Array): void {
    let text = "";
    for (const byte of bytes) {
      if (byte === XOFF) this.pause();
      else if (byte === XON) this.resume();
      else text += String.fromCharCode(byte);
    }
    this.heard = (this.heard + text).slice(-MAX_HELD);
    this.held += text;
    for (let end = this.held.indexOf("\n"); end >= 0; end = this.held.indexOf("\n")) {
      const line = this.held.slice(0, end + 1);
      this.held = this.held.slice(end + 1);
      this.receiveLine(line);
    }
    if (this.held.length > MAX_HELD) this.held = this.held.slice(-MAX_HELD);
  }

  private receiveLine(line: string): void {
    const whole = line.replace(/\r?\n$/, "");
    // By hand, because an expression for both would begin again at each answer's beginning.
    const found = ANSWER.exec(whole.slice(whole.lastIndexOf("\r") + 1));
    if (found === null) {
      const bare = textOf(whole.replace(PROMPT, ""));
      if (bare !== "") this.onLine(bare);
      if (bare.startsWith("Uncaught ")) this.complain(bare);
      return;
    }
    const [, id, kind, text = ""] = found;
    if (this.asked?.id !== Number(id)) return; // a late answer
    this.settle(kind === "ok" ? text : new BoardError(this.port.name, textOf(text)));
  }

  /** A damaged line gets an error message instead of an answer; a program may print one too. */
  private complain(line: string): void {
    const { asked } = this;
    if (asked === null || asked.complaint !== null) return;
    asked.complaint = setTimeout(() => {
      if (this.asked === asked) this.settle(new Damage(withoutSecrets(line)));
    }, COMPLAINT_GRACE_MS);
  }

  private settle(outcome: string | Error): void {
    const { asked } = this;
    this.asked = null;
    if (asked === null) return;
    if (asked.complaint !== null) clearTimeout(asked.complaint);
    if (typeof outcome === "string") asked.resolve(outcome);
    else asked.reject(outcome);
  }

  private pause(): void {
    if (this.stopped !== null) return;
    this.going = new Promise((resolve) => {
      this.stopped = resolve;
    });
  }

  private resume(): void {
    this.stopped?.();
    this.stopped = null;
  }

  private async mayGo(): Promise<void> {
    if (this.stopped === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, this.limits.xoffMs, "late");
    });
    const first = await Promise.race([this.going, late]);
    clearTimeout(timer);
    if (first === "late" && this.stopped !== null) {
      throw new BoardFailure(
        "silent",
        `${this.port.name}: the board sent XOFF ${this.limits.xoffMs / 1000} s ago and takes no more: press its reset and repeat the command`,
      );
    }
  }

  private lose(reason: string): void {
    const why = reason === "" ? "" : ` (${reason})`;
    this.gone = new BoardFailure(
      "gone",
      `${this.port.name} disconnected${why}: plug the board in again and repeat the command`,
    );
    this.resume();
    this.settle(this.gone);
    this.onGone(this.gone);
  }

  /** Called once when the port is gone or closed. */
  onGone: (failure: BoardFailure) => void = () => undefined;

  private silent(limitMs: number): BoardFailure {
    return new BoardFailure(
      "silent",
      `${this.port.name}: the board did not answer in ${limitMs / 1000} s: press its reset and repeat the command`,
    );
  }

  private damaged(complaint: string): BoardFailure {
    const said = complaint === "" ? "" : ` (${complaint})`;
    return new BoardFailure(
      "damaged",
      `${this.port.name}: an Espruino answers, but what is typed reaches it damaged${said}: use a lower --baud or a better cable, or repeat the command when this machine is less busy`,
    );
  }

  private unknown(): BoardFailure {
    const { name } = this.port;
    const said = this.heard.trim();
    if (said === "") {
      return new BoardFailure(
        "nothing",
        `nothing answers on ${name}: is it the board's port, is --baud right, is its console elsewhere (an agent of \`provision --serial\` takes it off its line: hold the board's button while you reset it)?`,
      );
    }
    if (isEspruino(said)) return this.damaged("");
    return new BoardFailure("foreign", `${name}: no Espruino answers here; ${runtimeOf(said)}`);
  }
}

const parseAnswer = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Damage(withoutSecrets(text).slice(0, 60));
  }
};

/** Its banner, or its error message about a line. */
const isEspruino = (said: string): boolean =>
  /espruino\.com|(^|[>J])Uncaught [A-Z]\w*Error: /m.test(said);

const RUNTIMES: readonly (readonly [RegExp, string])[] = [
  [/MicroPython|CircuitPython|^>>> |\n>>> /, "this is MicroPython or CircuitPython"],
  [/rst:0x|ets [A-Z][a-z]{2} |waiting for download/, "the boot loader of an ESP chip responds"],
  [/<xsbug|\bxsbug\b/, "a Moddable build talks to its debugger: use `--target moddable`"],
  [/NodeMCU|\bLua \d/, "this is NodeMCU (Lua)"],
];

/** Recognizes another runtime by its output, and says how to install Espruino there. */
export const runtimeOf = (said: string): string => {
  if (said.includes("\0")) {
    return "an agent uses this line for its bridge: use the board's other port, or hold its button while you reset it, which starts Espruino without the program";
  }
  const known = RUNTIMES.find(([pattern]) => pattern.test(said))?.[1];
  const line = said.split(/[\r\n]+/)[0]?.slice(0, 60) ?? "";
  const what = known ?? `it says ${JSON.stringify(textOf(line))}`;
  return `${what}. Put Espruino's firmware on it: https://www.espruino.com/Download`;
};
