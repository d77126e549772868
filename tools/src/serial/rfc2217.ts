/**
 * A serial port of a port server (ser2net, a terminal server) over RFC 2217: data in telnet binary
 * mode, settings and control lines by COM-PORT-OPTION. The server's flow control is obeyed.
 */
import {
  type ControlLines,
  NO_STATUS,
  type OpeningLines,
  type OpenPort,
  PortError,
  type PortEvents,
  type PortOpener,
  type StatusLines,
} from "@blindrelay/agent-sdk/bridge";
import { type LineSettings, MAX_KEPT_BYTES, NumberedBytes } from "@blindrelay/protocol/serial";
import { closeSocket, openSocket, writeSocket } from "./tcp.ts";
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
} from "./telnet.ts";

const ANSWER_LIMIT_MS = 5_000;

interface Waiting {
  readonly command: number;
  readonly resolve: (body: Uint8Array) => void;
  readonly reject: (error: PortError) => void;
  readonly timer: NodeJS.Timeout;
}

/** For optional settings: a server on a port without modem lines may not answer them. */
const BEST_EFFORT_LIMIT_MS = 1_000;

/** Requests without an answer from the server yet, and its reported settings. */
class Negotiation {
  modem: StatusLines = NO_STATUS;
  /** Whether the server refused to take, or to send, bytes as they are. */
  takesText = false;
  sendsText = false;
  private readonly waiting: Waiting[] = [];
  private readonly agreed = new Map<number, (yes: boolean) => void>();
  /** Told to the server once each: one that asks again and again gets no answer for each. */
  private readonly refused = new Set<string>();
  private suspended: Promise<void> | null = null;
  private resumeNow: () => void = () => undefined;
  private readonly say: (bytes: Uint8Array) => void;
  private over = false;

  constructor(say: (bytes: Uint8Array) => void) {
    this.say = say;
  }

  /** Offers COM-PORT-OPTION; resolves to whether the server supports it. */
  offer(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new PortError("gone", "the port server does not support RFC 2217")),
        ANSWER_LIMIT_MS,
      );
      this.agreed.set(OPTION_COM_PORT, (yes) => {
        clearTimeout(timer);
        resolve(yes);
      });
      for (const option of [OPTION_BINARY, OPTION_SUPPRESS_GO_AHEAD]) {
        this.say(encodeVerb("will", option));
        this.say(encodeVerb("do", option));
      }
      this.say(encodeVerb("will", OPTION_COM_PORT));
    });
  }

  asked(verb: Verb, option: number): void {
    if (option === OPTION_BINARY && verb === "dont") this.takesText = true;
    if (option === OPTION_BINARY && verb === "wont") this.sendsText = true;
    const ours = OPTIONS.includes(option);
    if (verb === "do" || verb === "dont") {
      this.agreed.get(option)?.(verb === "do");
      this.agreed.delete(option);
    }
    // Offers and requests of our own are not answered again (RFC 854).
    if (!ours && verb === "do") this.refuse("wont", option);
    if (!ours && verb === "will") this.refuse("dont", option);
  }

  told(option: number, body: Uint8Array): void {
    if (option !== OPTION_COM_PORT || body.length < 1) return;
    const command = (body[0] as number) - FROM_SERVER;
    if (command === COM_PORT.notifyModemState && body.length > 1) {
      const bits = body[1] as number;
      this.modem = {
        cts: (bits & MODEM.cts) !== 0,
        dsr: (bits & MODEM.dsr) !== 0,
        dcd: (bits & MODEM.dcd) !== 0,
      };
    } else if (command === COM_PORT.flowSuspend) {
      this.suspended ??= new Promise((resolve) => {
        this.resumeNow = resolve;
      });
    } else if (command === COM_PORT.flowResume) {
      this.release();
    } else {
      const index = this.waiting.findIndex((waiting) => waiting.command === command);
      const [found] = index < 0 ? [] : this.waiting.splice(index, 1);
      if (found === undefined) return;
      clearTimeout(found.timer);
      found.resolve(body.subarray(1));
    }
  }

  /** Resolves when the server accepts data. */
  async clear(): Promise<void> {
    while (this.suspended !== null && !this.over) await this.suspended;
  }

  /** Changes a setting; resolves to the value that the server set. */
  set(
    command: number,
    body: readonly number[],
    limitMs: number = ANSWER_LIMIT_MS,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.over) {
        reject(new PortError("gone", "the connection is gone"));
        return;
      }
      const timer = setTimeout(() => {
        const index = this.waiting.indexOf(entry);
        if (index >= 0) this.waiting.splice(index, 1);
        reject(new PortError("unsupported", "the port server does not answer this setting"));
      }, limitMs);
      const entry: Waiting = { command, resolve, reject, timer };
      this.waiting.push(entry);
      this.say(encodeComPort(command, body));
    });
  }

  /** Changes a setting that the line can do without; resolves to whether the server answered. */
  async tryToSet(command: number, body: readonly number[]): Promise<boolean> {
    try {
      await this.set(command, body, BEST_EFFORT_LIMIT_MS);
      return true;
    } catch (error) {
      if (error instanceof PortError && error.problem === "unsupported") return false;
      throw error;
    }
  }

  end(): void {
    this.over = true;
    for (const { timer, reject } of this.waiting.splice(0)) {
      clearTimeout(timer);
      reject(new PortError("gone", "the connection is gone"));
    }
    this.release();
  }

  private refuse(verb: "dont" | "wont", option: number): void {
    const name = `${verb} ${option}`;
    if (this.refused.has(name)) return;
    this.refused.add(name);
    this.say(encodeVerb(verb, option));
  }

  private release(): void {
    this.suspended = null;
    this.resumeNow();
  }
}

/** Resolves to whether the server confirmed the flow control; rejects for unsupported settings. */
const configure = async (negotiation: Negotiation, settings: LineSettings): Promise<boolean> => {
  const rate = await negotiation.set(COM_PORT.setBaudRate, encodeRate(settings.baudRate));
  if (decodeRate(rate) !== settings.baudRate) {
    throw new PortError("unsupported", `the port server has no ${settings.baudRate} baud`);
  }
  await negotiation.set(COM_PORT.setDataSize, [settings.dataBits]);
  await negotiation.set(COM_PORT.setParity, [placeOf(PARITIES, settings.parity)]);
  await negotiation.set(COM_PORT.setStopSize, [placeOf(STOP_BITS, settings.stopBits)]);
  const flow = [placeOf(FLOWS, settings.flowControl)];
  if (settings.flowControl === "none") return negotiation.tryToSet(COM_PORT.setControl, flow);
  // Without the requested flow control, bytes get lost.
  await negotiation.set(COM_PORT.setControl, flow);
  return true;
};

/** Resolves to the lines that the server did not confirm: its port may have none. */
const control = async (negotiation: Negotiation, lines: ControlLines): Promise<string[]> => {
  const unanswered: string[] = [];
  const set = async (name: string, value: boolean | undefined, on: number, off: number) => {
    if (value === undefined) return;
    const answered = await negotiation.tryToSet(COM_PORT.setControl, [value ? on : off]);
    if (!answered) unanswered.push(name);
  };
  await set("DTR", lines.dtr, CONTROL.dtrOn, CONTROL.dtrOff);
  await set("RTS", lines.rts, CONTROL.rtsOn, CONTROL.rtsOff);
  await set("break", lines.break, CONTROL.breakOn, CONTROL.breakOff);
  return unanswered;
};

const warnOnStderr = (text: string): void => {
  process.stderr.write(`warn: ${text}\n`);
};

/** `warn` is called for optional settings that the server did not answer. */
export const rfc2217Opener =
  (
    host: string,
    port: number,
    lines: OpeningLines = {},
    warn: (text: string) => void = warnOnStderr,
  ): PortOpener =>
  async (settings, events): Promise<OpenPort> => {
    /** What the device sends during the negotiation, of which as much is kept as of a raw port. */
    let early: NumberedBytes | null = new NumberedBytes();
    const socketEvents: PortEvents = {
      data: (bytes) => reader.receive(bytes),
      closed: (reason) => {
        negotiation.end();
        if (early === null) events.closed(reason);
      },
    };
    const socket = await openSocket(host, port, socketEvents);
    const negotiation: Negotiation = new Negotiation((bytes) => {
      if (!socket.destroyed) socket.write(bytes);
    });
    const reader: TelnetReader = new TelnetReader({
      data: (bytes) => {
        early?.push(bytes);
        early?.drop(early.end - MAX_KEPT_BYTES);
        if (early === null) events.data(bytes);
      },
      asked: (verb, option) => {
        negotiation.asked(verb, option);
        reader.text = negotiation.sendsText;
      },
      told: (option, body) => negotiation.told(option, body),
    });
    try {
      if (!(await negotiation.offer())) {
        throw new PortError("gone", "the port server does not support RFC 2217: use tcp://");
      }
      // First of all: a board that a raised line holds or restarts has little time.
      const unanswered = await control(negotiation, { dtr: lines.dtr, rts: lines.rts });
      const maskSet = negotiation.tryToSet(COM_PORT.setModemStateMask, [255]);
      // A refusal of the settings, or a hang-up, is told before this is waited for.
      maskSet.catch(() => undefined);
      if (!(await configure(negotiation, settings))) unanswered.push("flow control none");
      if (!(await maskSet)) unanswered.push("the mask of modem states");
      if (unanswered.length > 0) {
        const what = unanswered.join(" and ");
        warn(`rfc2217://${host}:${port} did not answer ${what}; CTS, DSR and DCD may be unknown`);
      }
    } catch (error) {
      socket.destroy();
      throw error;
    }
    if (socket.destroyed) throw new PortError("gone", "the port server hung up");
    setImmediate(() => {
      const kept = early ?? new NumberedBytes();
      early = null;
      while (kept.size > 0) {
        const bytes = kept.read(kept.from, kept.size);
        kept.drop(kept.from + bytes.length);
        events.data(bytes);
      }
      if (socket.destroyed) events.closed("the port server hung up");
    });
    return {
      async write(bytes) {
        await negotiation.clear();
        await writeSocket(socket, escapeData(bytes, negotiation.takesText));
      },
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      configure: async (next) => void (await configure(negotiation, next)),
      async control(lines) {
        const unanswered = await control(negotiation, lines);
        if (unanswered.length > 0) {
          warn(`rfc2217://${host}:${port} did not answer ${unanswered.join(" and ")}`);
        }
      },
      status: async () => negotiation.modem,
      close: () => closeSocket(socket),
    };
  };
