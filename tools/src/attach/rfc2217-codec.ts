/**
 * The server's side of RFC 2217 for one connection: what a tool sets goes to the bridge, in its
 * order between the bytes, and is answered when the bridge has done it. Control lines are answered
 * at once and run as one sequence (signal-sequence.ts).
 */
import type { ControlLines } from "@blindrelay/agent-sdk/bridge";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";
import type { StatusLinesJson } from "@blindrelay/client-sdk/serial";
import type { SettingsJson } from "@blindrelay/protocol/serial";
import { oneLine, printStatus } from "../base/output.ts";
import {
  COM_PORT,
  CONTROL,
  decodeRate,
  encodeComPort,
  encodeRate,
  encodeVerb,
  escapeData,
  FLOWS,
  FROM_SERVER,
  MODEM,
  OPTION_BINARY,
  OPTION_COM_PORT,
  OPTION_SUPPRESS_GO_AHEAD,
  OPTIONS,
  PARITIES,
  placeOf,
  STOP_BITS,
  TelnetReader,
  type Verb,
} from "../serial/telnet.ts";
import type { Remote } from "./local-side.ts";
import { SignalSequence } from "./signal-sequence.ts";
import type { Codec } from "./tcp-side.ts";

/** No tool has so many requests at the bridge that are not done; each is a call. */
const MAX_UNDONE = 256;

interface Setter {
  /** What is set; nothing if the value is only asked for, or cannot be set. */
  change(body: Uint8Array): Partial<SettingsJson>;
  /** The body of an answer: the value that is set now. */
  answer(settings: SettingsJson): number[];
}

const known = (name: keyof SettingsJson, value: unknown): Partial<SettingsJson> =>
  value === undefined ? {} : { [name]: value };

/** By command. */
const SETTERS: { readonly [command: number]: Setter } = {
  [COM_PORT.setBaudRate]: {
    change: (body) => known("baud_rate", decodeRate(body) || undefined),
    answer: ({ baud_rate }) => encodeRate(baud_rate),
  },
  [COM_PORT.setDataSize]: {
    change: ([bits]) => known("data_bits", bits || undefined),
    answer: ({ data_bits }) => [data_bits],
  },
  [COM_PORT.setParity]: {
    change: ([value = 0]) => known("parity", PARITIES[value - 1]),
    answer: ({ parity }) => [placeOf(PARITIES, parity)],
  },
  [COM_PORT.setStopSize]: {
    change: ([value = 0]) => known("stop_bits", STOP_BITS[value - 1]),
    answer: ({ stop_bits }) => [placeOf<number>(STOP_BITS, stop_bits)],
  },
};

/** Lines that a value of setControl sets. */
const LINES: { readonly [value: number]: ControlLines } = {
  [CONTROL.breakOn]: { break: true },
  [CONTROL.breakOff]: { break: false },
  [CONTROL.dtrOn]: { dtr: true },
  [CONTROL.dtrOff]: { dtr: false },
  [CONTROL.rtsOn]: { rts: true },
  [CONTROL.rtsOff]: { rts: false },
};

const bitsOf = ({ cts, dsr, dcd }: StatusLinesJson): number =>
  (cts === true ? MODEM.cts : 0) | (dsr === true ? MODEM.dsr : 0) | (dcd === true ? MODEM.dcd : 0);

class Rfc2217Codec implements Codec {
  private readonly remote: Remote;
  private readonly say: (bytes: Uint8Array) => void;
  private readonly reader: TelnetReader;
  private readonly sequence: SignalSequence;
  /** Options that are on: ours by WILL, theirs by DO. */
  private readonly ours = new Set<number>();
  private readonly theirs = new Set<number>();
  /** Changes of settings that came together, and their commands. */
  private change: Partial<SettingsJson> = {};
  private commands: number[] = [];
  private isScheduled = false;
  /** What must be done before the next change is answered. */
  private last: Promise<unknown> = Promise.resolve();
  private undone = 0;
  private isTold = false;
  private lines: ControlLines = { dtr: true, rts: true, break: false };
  private isModemAsked = false;
  private modem = 0;
  private modemMask = 255;
  private isOver = false;

  constructor(remote: Remote, timer: TimerPort, say: (bytes: Uint8Array) => void) {
    this.remote = remote;
    this.say = say;
    this.sequence = new SignalSequence(timer, (steps) =>
      this.doNext("the control lines", () => remote.signals(steps)),
    );
    this.reader = new TelnetReader({
      data: (bytes) => {
        this.settle();
        remote.write(bytes);
      },
      asked: (verb, option) => this.asked(verb, option),
      told: (option, body) => {
        if (option === OPTION_COM_PORT && body.length > 0)
          this.told(body[0] as number, body.subarray(1));
      },
    });
    for (const option of [OPTION_BINARY, OPTION_SUPPRESS_GO_AHEAD]) {
      this.turn(this.ours, "will", option);
      this.turn(this.theirs, "do", option);
    }
    this.turn(this.theirs, "do", OPTION_COM_PORT);
  }

  receive(bytes: Uint8Array): void {
    this.reader.receive(bytes);
  }

  encode(bytes: Uint8Array): Uint8Array {
    return escapeData(bytes);
  }

  changed(lines: StatusLinesJson): void {
    const bits = bitsOf(lines);
    // The lower half: which of them have changed.
    const notice = bits | ((bits ^ this.modem) >> 4);
    this.modem = bits;
    if ((notice & this.modemMask) !== 0) this.answer(COM_PORT.notifyModemState, [notice]);
  }

  /** Changes while it was away were told to nobody. */
  up(): void {
    if (!this.isModemAsked || !this.hasRoom()) return;
    this.undone++;
    this.remote
      .status()
      .then(
        (lines) => this.changed(lines),
        () => undefined,
      )
      .finally(() => {
        this.undone--;
      });
  }

  end(): void {
    this.isOver = true;
    // A tool may end right after a reset, whose lines have changed as far as it knows.
    this.sequence.flush();
  }

  private turn(on: Set<number>, verb: Verb, option: number): void {
    if (on.has(option)) return;
    on.add(option);
    this.say(encodeVerb(verb, option));
  }

  private asked(verb: Verb, option: number): void {
    const known = OPTIONS.includes(option);
    if (verb === "will") {
      if (known) this.turn(this.theirs, "do", option);
      else this.say(encodeVerb("dont", option));
    } else if (verb === "do") {
      if (known && option !== OPTION_COM_PORT) this.turn(this.ours, "will", option);
      else this.say(encodeVerb("wont", option));
    }
    if (verb === "will" && option === OPTION_COM_PORT) void this.tellModem();
  }

  /** Tools wait for the first notice before they read a status line. */
  private async tellModem(): Promise<void> {
    if (!this.hasRoom()) return;
    this.isModemAsked = true;
    this.undone++;
    // Unknown lines are told as off.
    const lines = await this.remote.status().catch((): StatusLinesJson => ({}));
    this.undone--;
    this.modem = bitsOf(lines);
    this.answer(COM_PORT.notifyModemState, [this.modem]);
  }

  private told(command: number, body: Uint8Array): void {
    const [value = 0] = body;
    const setter = SETTERS[command];
    if (setter !== undefined) this.set(command, setter.change(body));
    else if (command === COM_PORT.setControl) this.control(value);
    else if (command === COM_PORT.purgeData) this.purge(value);
    else if (command === COM_PORT.setModemStateMask) {
      this.modemMask = value;
      this.answer(command, [value]);
    } else if (command === COM_PORT.setLineStateMask) this.answer(command, [value]);
    else if (command === COM_PORT.notifyModemState) void this.tellModem();
    else if (command === COM_PORT.signature) {
      this.answer(command, [...Buffer.from("blindrelay attach")]);
    }
  }

  /** Those that come together make one call. */
  private set(command: number, change: Partial<SettingsJson>): void {
    this.change = { ...this.change, ...change };
    this.commands.push(command);
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => this.settleSettings());
  }

  /** Whatever came before is on its way to the bridge. */
  private settle(): void {
    this.sequence.flush();
    this.settleSettings();
  }

  private settleSettings(): void {
    if (!this.isScheduled) return;
    this.isScheduled = false;
    this.sequence.flush();
    const { change, commands } = this;
    this.change = {};
    this.commands = [];
    this.doNext(
      "the settings",
      async () => {
        if (Object.keys(change).length > 0) await this.remote.configure(change);
      },
      () => {
        const { settings } = this.remote;
        if (settings === null) return;
        for (const command of commands)
          this.answer(command, (SETTERS[command] as Setter).answer(settings));
      },
    );
  }

  private control(value: number): void {
    const lines = LINES[value];
    if (lines !== undefined) {
      this.settleSettings();
      this.lines = { ...this.lines, ...lines };
      this.sequence.add(lines);
      this.answer(COM_PORT.setControl, [value]);
      return;
    }
    const { settings } = this.remote;
    if (value >= CONTROL.flowNone && value <= CONTROL.flowHardware) {
      const flow = FLOWS[value - 1] as (typeof FLOWS)[number];
      this.settle();
      this.doNext(
        "the flow control",
        async () => {
          if (settings?.flow_control !== flow) await this.remote.configure({ flow_control: flow });
        },
        () => this.answerControl(CONTROL.askFlow),
      );
      return;
    }
    this.answerControl(value);
  }

  /** For a value that only asks. Input's flow control is that of the output. */
  private answerControl(asked: number): void {
    const { dtr, rts, break: isBreak } = this.lines;
    const flow = placeOf(FLOWS, this.remote.settings?.flow_control ?? "none");
    const now: { readonly [value: number]: number } = {
      [CONTROL.askFlow]: flow,
      [CONTROL.askBreak]: isBreak === true ? CONTROL.breakOn : CONTROL.breakOff,
      [CONTROL.askDtr]: dtr === true ? CONTROL.dtrOn : CONTROL.dtrOff,
      [CONTROL.askRts]: rts === true ? CONTROL.rtsOn : CONTROL.rtsOff,
    };
    this.answer(COM_PORT.setControl, [now[asked] ?? asked]);
  }

  private purge(value: number): void {
    this.settle();
    this.doNext(
      "the purge",
      () => this.remote.purge((value & 1) !== 0, (value & 2) !== 0),
      () => this.answer(COM_PORT.purgeData, [value]),
    );
  }

  /**
   * Starts at once, so that it keeps its place before what is written next; its answer waits for
   * those before it.
   */
  private doNext(what: string, run: () => Promise<unknown>, answer?: () => void): void {
    if (!this.hasRoom()) return;
    this.undone++;
    const started = run()
      .catch((error: Error) => {
        if (!this.isOver) printStatus(`${what} could not be set: ${oneLine(error.message)}`);
      })
      .finally(() => {
        this.undone--;
      });
    this.last = Promise.all([this.last, started]).then(() => answer?.());
  }

  /** Whether another request is done; one beyond the limit is not, and has no answer. */
  private hasRoom(): boolean {
    const isRoom = this.undone < MAX_UNDONE;
    if (!isRoom && !this.isTold) {
      printStatus(`a program asks for more than the bridge does: ${MAX_UNDONE} requests wait`);
      this.isTold = true;
    }
    return isRoom;
  }

  private answer(command: number, body: readonly number[]): void {
    if (!this.isOver) this.say(encodeComPort(command + FROM_SERVER, body));
  }
}

export const rfc2217Codec =
  (timer: TimerPort) =>
  (remote: Remote, say: (bytes: Uint8Array) => void): Codec =>
    new Rfc2217Codec(remote, timer, say);
