/**
 * Makes serialport 13 deliver what it has received. From Node 26.4 on, its native callbacks do not
 * run the promises that they settle; these wait for the next turn of the event loop, so bytes and
 * hang-ups arrive with the next timer (serialport/node-serialport#3148,
 * serialport/bindings-cpp#239). Here every such callback causes a turn.
 */
import type { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";

/** If there is no poller to listen to (Windows), a timer turns the loop this often. */
const TURN_MS = 10;

/** A serialport has its binding in `port` once it is open; other streams have none. */
interface MaybeSerialPort extends Duplex {
  readonly port?: { readonly poller?: EventEmitter };
}

const turn = (): void => {
  setImmediate(() => undefined);
};

const wakeFor = (line: MaybeSerialPort): void => {
  if (line.port === undefined) return;
  const { poller } = line.port;
  if (poller !== undefined) {
    for (const event of ["readable", "writable", "disconnect"]) poller.on(event, turn);
    return;
  }
  const timer = setInterval(() => undefined, TURN_MS);
  line.once("close", () => clearInterval(timer));
};

/** For a line that may be a serialport, open already or later; ends with it. */
export const wakeEventLoop = (line: Duplex): void => {
  wakeFor(line);
  line.on("open", () => wakeFor(line));
};
