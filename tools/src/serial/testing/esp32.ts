/**
 * An ESP32 behind a port server: its usual reset circuit, and a boot loader that takes every
 * command of esptool and has zeros in its registers. DTR pulls IO0 low and RTS pulls EN low, each
 * only while the other is off; EN rises slowly, and the chip looks at IO0 when it has risen.
 */
import { wired } from "./server.ts";

const END = 0xc0;
/** What SLIP (RFC 1055) puts in place of END and of itself. */
const ESCAPE = 0xdb;
const [ESCAPED_END, ESCAPED_ESCAPE] = [0xdc, 0xdd];

const slip = (frame: Uint8Array): Buffer => {
  const inner = [...frame].flatMap((byte) => {
    if (byte === END) return [ESCAPE, ESCAPED_END];
    return byte === ESCAPE ? [ESCAPE, ESCAPED_ESCAPE] : [byte];
  });
  return Buffer.from([END, ...inner, END]);
};

const unslip = (frame: Buffer): Buffer => {
  const bytes: number[] = [];
  for (let at = 0; at < frame.length; at++) {
    if (frame[at] !== ESCAPE) bytes.push(frame[at] as number);
    else bytes.push(frame[++at] === ESCAPED_END ? END : ESCAPE);
  }
  return Buffer.from(bytes);
};

const [SYNC, READ_REGISTER] = [0x08, 0x0a];
const SYNC_DATA = Buffer.concat([Buffer.from([7, 7, 0x12, 0x20]), Buffer.alloc(32, 0x55)]);
/** A sync is answered this often. */
const SYNC_ANSWERS = 8;
/** The register by which esptool tells chips apart, and an ESP32's value in it. */
const KIND_REGISTER = 0x4000_1000;
const KIND = 0x00f0_1d83;

const answer = (op: number, value: number): Buffer => {
  const frame = Buffer.alloc(12);
  frame.set([1, op, 4, 0]);
  frame.writeUInt32LE(value, 4);
  return slip(frame);
};

/** What esptool sends, and the head of the answer. */
export const SYNC_REQUEST = slip(
  Buffer.concat([Buffer.from([0, SYNC, SYNC_DATA.length, 0, 0, 0, 0, 0]), SYNC_DATA]),
);
export const SYNC_ANSWER = answer(SYNC, 0x2012_0707).subarray(0, 5);

/** `riseMs`: of EN, by its capacitor. */
export const esp32 = async (riseMs: number) => {
  const chip = { isLoader: false, resets: 0, loads: 0 };
  const made = await wired((say) => {
    let [isBoot, isHeld] = [false, false];
    let rising: NodeJS.Timeout | undefined;
    let heard = Buffer.alloc(0);
    const ask = (frame: Buffer): void => {
      const op = frame[1];
      if (op === SYNC && frame.subarray(8).equals(SYNC_DATA)) {
        for (let n = 0; n < SYNC_ANSWERS; n++) say(answer(SYNC, 0x2012_0707));
      } else if (op !== undefined && op !== SYNC) {
        const isKind = op === READ_REGISTER && frame.readUInt32LE(8) === KIND_REGISTER;
        say(answer(op, isKind ? KIND : 0));
      }
    };
    return {
      data: (bytes) => {
        if (!chip.isLoader) return;
        heard = Buffer.concat([heard, bytes]);
        for (let end = heard.indexOf(END); end >= 0; end = heard.indexOf(END)) {
          if (end > 0) ask(unslip(heard.subarray(0, end)));
          heard = heard.subarray(end + 1);
        }
      },
      lines: (dtr, rts) => {
        const isLow = rts && !dtr;
        isBoot = dtr && !rts;
        if (isLow === isHeld) return;
        isHeld = isLow;
        clearTimeout(rising);
        if (isLow) {
          chip.isLoader = false;
          return;
        }
        rising = setTimeout(() => {
          chip.resets++;
          chip.isLoader = isBoot;
          if (chip.isLoader) chip.loads++;
          heard = Buffer.alloc(0);
        }, riseMs);
      },
    };
  });
  return { ...made, chip };
};
