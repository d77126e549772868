/**
 * The parts of telnet (RFC 854, 855) and its COM-PORT-OPTION (RFC 2217) that a port server and its
 * clients need: bytes in, data and commands out, and the bytes to send. Pure.
 */

const NUL = 0;
const CR = 13;
const IAC = 255;
const DONT = 254;
const DO = 253;
const WONT = 252;
const WILL = 251;
const SB = 250;
const SE = 240;

export const OPTION_BINARY = 0;
export const OPTION_SUPPRESS_GO_AHEAD = 3;
export const OPTION_COM_PORT = 44;
/** What both sides of a port want. */
export const OPTIONS = [OPTION_BINARY, OPTION_SUPPRESS_GO_AHEAD, OPTION_COM_PORT];

/** Client to server; the server's answer and notices are 100 higher. */
export const COM_PORT = {
  signature: 0,
  setBaudRate: 1,
  setDataSize: 2,
  setParity: 3,
  setStopSize: 4,
  setControl: 5,
  notifyLineState: 6,
  notifyModemState: 7,
  flowSuspend: 8,
  flowResume: 9,
  setLineStateMask: 10,
  setModemStateMask: 11,
  purgeData: 12,
} as const;
export const FROM_SERVER = 100;

/** Values of setControl (RFC 2217 section 3). */
export const CONTROL = {
  askFlow: 0,
  flowNone: 1,
  flowXon: 2,
  flowHardware: 3,
  askBreak: 4,
  breakOn: 5,
  breakOff: 6,
  askDtr: 7,
  dtrOn: 8,
  dtrOff: 9,
  askRts: 10,
  rtsOn: 11,
  rtsOff: 12,
} as const;

/** A setting's value in setParity, in setStopSize and in setControl is its place here, from 1. */
export const PARITIES = ["none", "odd", "even", "mark", "space"] as const;
export const STOP_BITS = [1, 2, 1.5] as const;
export const FLOWS = ["none", "xon", "rts"] as const;
export const placeOf = <T>(list: readonly T[], value: T): number => list.indexOf(value) + 1;

/** The body of setBaudRate. */
export const encodeRate = (rate: number): number[] =>
  [24, 16, 8, 0].map((bits) => (rate >>> bits) & 255);
export const decodeRate = (body: Uint8Array): number =>
  body.reduce((sum, byte) => sum * 256 + byte, 0);

/** Bits of a modem state. */
export const MODEM = { cts: 0x10, dsr: 0x20, dcd: 0x80 } as const;

/** A longer subnegotiation is truncated: none of ours is that long. */
const MAX_SUBNEGOTIATION = 256;

const VERBS = { do: DO, dont: DONT, will: WILL, wont: WONT } as const;
export type Verb = keyof typeof VERBS;
const NAMES = Object.keys(VERBS) as Verb[];

interface TelnetEvents {
  data(bytes: Uint8Array): void;
  asked(verb: Verb, option: number): void;
  /** The bytes between SB and SE, the option first. */
  told(option: number, body: Uint8Array): void;
}

type State = "data" | "iac" | "verb" | "sub" | "subIac";

/** Parses telnet, in whatever pieces it arrives. */
export class TelnetReader {
  /** Whether the server sends text, in which a CR alone is CR NUL (RFC 854). */
  text = false;
  private afterCr = false;
  private readonly events: TelnetEvents;
  private state: State = "data";
  private verb: Verb = "do";
  private sub: number[] = [];

  constructor(events: TelnetEvents) {
    this.events = events;
  }

  receive(bytes: Uint8Array): void {
    const data = new Uint8Array(bytes.length);
    let [told, length] = [0, 0];
    const tellData = (): void => {
      if (length > told) this.events.data(data.subarray(told, length));
      told = length;
    };
    for (const byte of bytes) {
      const isPadding = this.text && this.afterCr && byte === NUL;
      this.afterCr = this.state === "data" && byte === CR;
      if (this.state === "data" && isPadding) continue;
      if (this.state === "data" && byte !== IAC) data[length++] = byte;
      else if (this.state === "iac" && byte === IAC) {
        this.state = "data";
        data[length++] = IAC;
      } else this.command(byte, tellData);
    }
    tellData();
  }

  /** `before`: tells the data that came before the command. */
  private command(byte: number, before: () => void): void {
    switch (this.state) {
      case "data":
        this.state = "iac";
        return;
      case "iac": {
        const verb = NAMES.find((name) => VERBS[name] === byte);
        if (verb !== undefined) {
          this.verb = verb;
          this.state = "verb";
        } else if (byte === SB) {
          this.sub = [];
          this.state = "sub";
        } else this.state = "data"; // NOP and similar commands
        return;
      }
      case "verb":
        this.state = "data";
        before();
        this.events.asked(this.verb, byte);
        return;
      case "sub":
        if (byte === IAC) this.state = "subIac";
        else this.keep(byte);
        return;
      case "subIac":
        if (byte === IAC) {
          this.keep(IAC);
          this.state = "sub";
          return;
        }
        this.state = "data";
        if (byte === SE && this.sub.length > 0) {
          before();
          this.events.told(this.sub[0] as number, Uint8Array.from(this.sub.slice(1)));
        }
    }
  }

  private keep(byte: number): void {
    if (this.sub.length < MAX_SUBNEGOTIATION) this.sub.push(byte);
  }
}

/** Data with every 255 doubled and, for a server that takes text, every CR as CR NUL. */
export const escapeData = (bytes: Uint8Array, text = false): Uint8Array => {
  const isSpecial = (byte: number): boolean => byte === IAC || (text && byte === CR);
  let more = 0;
  for (const byte of bytes) if (isSpecial(byte)) more++;
  if (more === 0) return bytes;
  const escaped = new Uint8Array(bytes.length + more);
  let at = 0;
  for (const byte of bytes) {
    escaped[at++] = byte;
    if (isSpecial(byte)) escaped[at++] = byte === IAC ? IAC : NUL;
  }
  return escaped;
};

export const encodeVerb = (verb: Verb, option: number): Uint8Array =>
  Uint8Array.of(IAC, VERBS[verb], option);

export const encodeComPort = (command: number, body: readonly number[]): Uint8Array => {
  const inside = escapeData(Uint8Array.from(body));
  return Uint8Array.of(IAC, SB, OPTION_COM_PORT, command, ...inside, IAC, SE);
};
