/**
 * What Node has no call for: a pseudo-terminal, and the line settings of a terminal. The C library
 * is called through koffi (docs/decisions.md). Linux has its rates as numbers (TCGETS2); elsewhere
 * a pseudo-terminal tells no settings.
 */
import { closeSync, constants, openSync } from "node:fs";
import type { FlowControl, LineSettings } from "@blindrelay/protocol/serial";

/** <asm-generic/ioctls.h>; struct termios2 has 44 bytes: five words of flags, c_cc, two rates. */
const TCGETS2 = 0x802c_542a;
const TCSETS2 = 0x402c_542b;
const TERMIOS2_BYTES = 44;
const AT = { iflag: 0, cflag: 8, ispeed: 36, ospeed: 40 } as const;
/** Flags of <asm-generic/termbits.h>. */
const IXON = 0x400;
const IXOFF = 0x1000;
const CBAUD = 0x100f;
/** Any rate. Programs that know only those with a code of their own read it as 0. */
const BOTHER = 0x1000;
/** Their codes are 1 and so on, and 0x1001 and so on. */
const LOW_RATES = [
  50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400,
];
const HIGH_RATES = [
  ...[57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000],
  ...[1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000],
];
const CSIZE = 0x30;
const CSTOPB = 0x40;
const CREAD = 0x80;
const PARENB = 0x100;
const PARODD = 0x200;
const CLOCAL = 0x800;
const CMSPAR = 0x4000_0000;
const CRTSCTS = 0x8000_0000;
/** Longest path of a terminal; and more than any system's struct termios. */
const MAX_PATH = 128;
const ANY_TERMIOS = 256;

interface CLibrary {
  posix_openpt(flags: number): number;
  grantpt(fd: number): number;
  unlockpt(fd: number): number;
  ptsname(fd: number): string | null;
  ioctl(fd: number, request: number, termios: Uint8Array): number;
  tcgetattr(fd: number, termios: Uint8Array): number;
  tcsetattr(fd: number, when: number, termios: Uint8Array): number;
  cfmakeraw(termios: Uint8Array): void;
}

let library: CLibrary | null = null;

/** An optional dependency: it has no binary for every platform. Rejects with an Error. */
const loadKoffi = async () => {
  try {
    return (await import("koffi")).default;
  } catch (error) {
    const [reason] = (error as Error).message.split("\n");
    const fix = "npm install --include=optional @blindrelay/tools";
    throw new Error(`this needs the package koffi, which does not load (${reason}): ${fix}`, {
      cause: error,
    });
  }
};

/** Loaded when the first one is needed: most commands need none. */
const loadLibrary = async (): Promise<CLibrary> => {
  if (library !== null) return library;
  const koffi = await loadKoffi();
  const c = koffi.load(null);
  const ioctl = c.func("int ioctl(int fd, unsigned long request, ...)");
  library = {
    posix_openpt: c.func("int posix_openpt(int flags)"),
    grantpt: c.func("int grantpt(int fd)"),
    unlockpt: c.func("int unlockpt(int fd)"),
    ptsname: c.func("const char *ptsname(int fd)"),
    ioctl: (fd, request, termios) => ioctl(fd, request, "uint8_t *", termios),
    tcgetattr: c.func("int tcgetattr(int fd, _Out_ uint8_t *termios)"),
    tcsetattr: c.func("int tcsetattr(int fd, int when, uint8_t *termios)"),
    cfmakeraw: c.func("void cfmakeraw(_Inout_ uint8_t *termios)"),
  };
  return library;
};

export interface Pty {
  /** Ours; never blocks. */
  readonly master: number;
  /** Kept open, so that a program may close it and another open it. */
  readonly slave: number;
  readonly path: string;
  /** What the program that uses it has set; null where the system does not tell. */
  settings(): LineSettings | null;
  /** For a program that asks before it sets anything. */
  setRate(baudRate: number): void;
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset);
const IS_LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

const flowOf = (iflag: number, cflag: number): FlowControl => {
  if ((cflag & CRTSCTS) !== 0) return "rts";
  return (iflag & (IXON | IXOFF)) === 0 ? "none" : "xon";
};

const readTermios2 = (c: CLibrary, fd: number): Uint8Array | null => {
  const termios = new Uint8Array(TERMIOS2_BYTES);
  return c.ioctl(fd, TCGETS2, termios) === 0 ? termios : null;
};

const settingsIn = (termios: Uint8Array): LineSettings => {
  const view = viewOf(termios);
  const cflag = view.getUint32(AT.cflag, IS_LITTLE);
  const isOdd = (cflag & PARODD) !== 0;
  const sticky = (cflag & CMSPAR) !== 0;
  const parity = sticky ? (isOdd ? "mark" : "space") : isOdd ? "odd" : "even";
  return {
    baudRate: view.getUint32(AT.ospeed, IS_LITTLE),
    dataBits: (5 + ((cflag & CSIZE) >> 4)) as LineSettings["dataBits"],
    parity: (cflag & PARENB) === 0 ? "none" : parity,
    stopBits: (cflag & CSTOPB) === 0 ? 1 : 2,
    flowControl: flowOf(view.getUint32(AT.iflag, IS_LITTLE), cflag),
  };
};

const codeOf = (baudRate: number): number => {
  const low = LOW_RATES.indexOf(baudRate) + 1;
  return low === 0 ? BOTHER + HIGH_RATES.indexOf(baudRate) + 1 : low;
};

const setRateIn = (termios: Uint8Array, baudRate: number): void => {
  const view = viewOf(termios);
  const cflag = view.getUint32(AT.cflag, IS_LITTLE);
  const others = cflag & ~CBAUD & ~(CBAUD << 16);
  view.setUint32(AT.cflag, (others | codeOf(baudRate)) >>> 0, IS_LITTLE);
  view.setUint32(AT.ispeed, baudRate, IS_LITTLE);
  view.setUint32(AT.ospeed, baudRate, IS_LITTLE);
};

/** Bytes pass as they are, until a program sets something else. */
const makeRaw = (c: CLibrary, fd: number): boolean => {
  const termios = new Uint8Array(ANY_TERMIOS);
  if (c.tcgetattr(fd, termios) !== 0) return false;
  c.cfmakeraw(termios);
  return c.tcsetattr(fd, 0, termios) === 0;
};

/** Rejects with an Error if the system has none. */
export const openPty = async (): Promise<Pty> => {
  const c = await loadLibrary();
  const { O_RDWR, O_NOCTTY, O_NONBLOCK } = constants;
  // Without O_CLOEXEC, which Node does not name: nothing is started by `attach`.
  const master = c.posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (master < 0) throw new Error("the system has no pseudo-terminal left");
  const path = c.grantpt(master) === 0 && c.unlockpt(master) === 0 ? c.ptsname(master) : null;
  if (path === null || path.length > MAX_PATH) {
    closeSync(master);
    throw new Error("the system does not grant a pseudo-terminal");
  }
  const slave = openSync(path, O_RDWR | O_NOCTTY);
  makeRaw(c, slave);
  const isLinux = process.platform === "linux";
  return {
    master,
    slave,
    path,
    settings: () => {
      const termios = isLinux ? readTermios2(c, master) : null;
      return termios === null ? null : settingsIn(termios);
    },
    setRate: (baudRate) => {
      const termios = isLinux ? readTermios2(c, master) : null;
      if (termios === null) return;
      setRateIn(termios, baudRate);
      c.ioctl(master, TCSETS2, termios);
    },
  };
};

/**
 * Sets a line of this machine that is open as `fd`, in the order of what is written; false where
 * the system or the driver cannot do it.
 */
export const setLine = async (fd: number, settings: LineSettings): Promise<boolean> => {
  if (process.platform !== "linux" || settings.stopBits === 1.5) return false;
  const c = await loadLibrary();
  const termios = readTermios2(c, fd);
  if (termios === null) return false;
  const view = viewOf(termios);
  const { parity, dataBits, stopBits, flowControl } = settings;
  const gone = CSIZE | CSTOPB | PARENB | PARODD | CMSPAR | CRTSCTS;
  let cflag = (view.getUint32(AT.cflag, IS_LITTLE) & ~gone) | CREAD | CLOCAL;
  cflag |= (dataBits - 5) << 4;
  if (stopBits === 2) cflag |= CSTOPB;
  if (parity !== "none") cflag |= PARENB;
  if (parity === "odd" || parity === "mark") cflag |= PARODD;
  if (parity === "mark" || parity === "space") cflag |= CMSPAR;
  if (flowControl === "rts") cflag |= CRTSCTS;
  view.setUint32(AT.cflag, cflag >>> 0, IS_LITTLE);
  const iflag = view.getUint32(AT.iflag, IS_LITTLE) & ~(IXON | IXOFF);
  view.setUint32(AT.iflag, (flowControl === "xon" ? iflag | IXON | IXOFF : iflag) >>> 0, IS_LITTLE);
  setRateIn(termios, settings.baudRate);
  if (c.ioctl(fd, TCSETS2, termios) !== 0) return false;
  const got = readTermios2(c, fd);
  return got !== null && JSON.stringify(settingsIn(got)) === JSON.stringify(settings);
};
