/**
 * An ESP32 behind a port server: its usual reset circuit, and a boot loader that answers a sync.
 * DTR pulls IO0 low and RTS pulls EN low, each only while the other is off; EN rises slowly, and
 * the chip looks at IO0 when it has risen.
 */
import { escapeData, TelnetReader } from "../telnet.ts";
import { serve } from "./server.ts";

const SYNC = Buffer.concat([Buffer.from([7, 7, 0x12, 0x20]), Buffer.alloc(32, 0x55)]);
const command = (op: number, data: Uint8Array): Buffer => {
  const head = Buffer.from([0, op, data.length & 255, data.length >> 8, 0, 0, 0, 0]);
  return Buffer.concat([Buffer.from([0xc0]), head, data, Buffer.from([0xc0])]);
};

/** What esptool sends, and the head of the answer. */
export const SYNC_REQUEST = command(0x08, SYNC);
export const SYNC_ANSWER = Buffer.from([0xc0, 0x01, 0x08, 0x04, 0x00]);

/** `riseMs`: of EN, by its capacitor. */
export const esp32 = async (riseMs: number) => {
  const chip = { isLoader: false, resets: 0, changes: [] as string[] };
  const made = await serve((socket) => {
    let [dtr, rts, isHeld] = [false, false, false];
    let rising: NodeJS.Timeout | undefined;
    let heard = Buffer.alloc(0);
    const changed = (): void => {
      const isLow = rts && !dtr;
      if (isLow === isHeld) return;
      isHeld = isLow;
      clearTimeout(rising);
      if (isLow) return;
      rising = setTimeout(() => {
        chip.resets++;
        chip.isLoader = dtr && !rts;
        heard = Buffer.alloc(0);
      }, riseMs);
    };
    const say = (...bytes: number[]) => socket.write(Uint8Array.from(bytes));
    const reader = new TelnetReader({
      data: (bytes) => {
        heard = Buffer.concat([heard, bytes]).subarray(-SYNC_REQUEST.length);
        if (!chip.isLoader || !heard.equals(SYNC_REQUEST)) return;
        const answer = Buffer.concat([
          SYNC_ANSWER,
          Buffer.from([7, 7, 0x12, 0x20, 0, 0, 0, 0, 0xc0]),
        ]);
        socket.write(escapeData(answer));
      },
      asked: (verb, option) => {
        if (verb === "will") say(255, 253, option);
        if (verb === "do") say(255, 251, option);
      },
      told: (option, body) => {
        const [number = 0, ...values] = body;
        say(255, 250, option, number + 100, ...escapeData(Uint8Array.from(values)), 255, 240);
        if (number !== 5) return;
        const [value = 0] = values;
        if (value === 8 || value === 9) dtr = value === 8;
        else if (value === 11 || value === 12) rts = value === 11;
        else return;
        chip.changes.push(`${dtr ? "D" : "d"}${rts ? "R" : "r"}`);
        changed();
      },
    });
    socket.on("data", (bytes: Buffer) => reader.receive(bytes));
    socket.on("error", () => undefined);
  });
  return { ...made, chip };
};
