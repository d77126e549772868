/** Boards behind a port server, as far as their tools need them. */
import { wired } from "./server.ts";

const OPTIBOOT_MS = 1_000;
const [IN_SYNC, OK] = [0x14, 0x10];
/** Commands of STK500 version 1, and how many bytes follow each before its end (0x20). */
const STK = {
  getParameter: [0x41, 1],
  setDevice: [0x42, 20],
  setExtended: [0x45, 5],
  leave: [0x51, 0],
  address: [0x55, 2],
  universal: [0x56, 4],
  program: [0x64, 3],
  read: [0x74, 3],
  signature: [0x75, 0],
} as const;

/**
 * An Arduino Uno: DTR that goes on starts its boot loader (Optiboot), which leaves when nothing
 * comes for a second.
 */
export const uno = async () => {
  const flash = new Uint8Array(32_768).fill(255);
  const board = { flash, resets: 0 };
  const made = await wired((say) => {
    let [isOn, until, address] = [false, 0, 0];
    let heard = Buffer.alloc(0);
    const sizes = new Map<number, number>(Object.values(STK).map(([op, size]) => [op, size]));
    /** Runs the first command; returns its size, or 0 if it has not come as a whole. */
    const step = (): number => {
      const op = heard[0] as number;
      const isPage = op === STK.program[0] && heard.length >= 4;
      const size = (sizes.get(op) ?? 0) + (isPage ? heard.readUInt16BE(1) : 0) + 2;
      if (heard.length < size) return 0;
      const done = (...bytes: number[]) => say(Uint8Array.from([IN_SYNC, ...bytes, OK]));
      if (op === STK.signature[0]) done(0x1e, 0x95, 0x0f);
      else if (op === STK.getParameter[0]) done(4);
      else if (op === STK.universal[0]) done(0);
      else if (op === STK.read[0])
        done(...flash.subarray(address, address + heard.readUInt16BE(1)));
      else {
        if (op === STK.address[0]) address = 2 * heard.readUInt16LE(1);
        if (op === STK.program[0]) flash.set(heard.subarray(4, size - 1), address);
        if (op === STK.leave[0]) until = 0;
        done();
      }
      return size;
    };
    return {
      data: (bytes) => {
        if (performance.now() > until) return;
        until = performance.now() + OPTIBOOT_MS;
        heard = Buffer.concat([heard, bytes]);
        for (let size = 1; size > 0 && heard.length > 0; heard = heard.subarray(size))
          size = step();
      },
      lines: (dtr) => {
        if (dtr && !isOn) {
          board.resets++;
          until = performance.now() + OPTIBOOT_MS;
          heard = Buffer.alloc(0);
        }
        isOn = dtr;
      },
    };
  });
  return { ...made, board };
};

const [CTRL_A, CTRL_B, CTRL_C, CTRL_D] = [1, 2, 3, 4];

/** A board with a MicroPython from before raw paste, which can print a text and no more. */
export const micropython = async () => {
  const board = { ran: [] as string[] };
  const made = await wired((say) => {
    let [isRaw, text] = [false, ""];
    const tell = (line: string) => say(Buffer.from(line, "latin1"));
    const rawPrompt = "raw REPL; CTRL-B to exit\r\n>";
    return {
      data: (bytes) => {
        for (const byte of bytes) {
          if (byte === CTRL_A) {
            [isRaw, text] = [true, ""];
            tell(`\r\n${rawPrompt}`);
          } else if (byte === CTRL_B) {
            isRaw = false;
            tell("\r\nMicroPython\r\n>>> ");
          } else if (byte === CTRL_C) text = "";
          else if (isRaw && byte === CTRL_D && text === "")
            tell(`OK\r\nMPY: soft reboot\r\n${rawPrompt}`);
          else if (isRaw && byte === CTRL_D) {
            board.ran.push(text);
            const said = /^print\((['"])(.*)\1\)$/.exec(text.trim())?.[2] ?? "";
            tell(`OK${said}\r\n\x04\x04>`);
            text = "";
          } else if (byte !== 13) text += String.fromCharCode(byte);
        }
      },
      lines: () => undefined,
    };
  });
  return { ...made, board };
};
