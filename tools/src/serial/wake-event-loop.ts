/**
 * Makes serialport 13 deliver what it has received. From Node 26.4 on, its native callbacks do not
 * run the promises that they settle; these wait for the next turn of the event loop, so bytes and
 * hang-ups arrive with the next timer (serialport/node-serialport#3148,
 * serialport/bindings-cpp#239). Here every such callback causes a turn.
 */
import type { EventEmitter } from "node:events";
import type { SerialPort } from "serialport";

/** If there is no poller to listen to (Windows), a timer turns the loop this often. */
const TURN_MS = 10;

const turn = (): void => {
  setImmediate(() => undefined);
};

/** For an open port; ends with it. */
export const wakeEventLoop = (serial: SerialPort): void => {
  const { poller } = serial.port as unknown as { readonly poller?: EventEmitter };
  if (poller !== undefined) {
    for (const event of ["readable", "writable", "disconnect"]) poller.on(event, turn);
    return;
  }
  const timer = setInterval(() => undefined, TURN_MS);
  serial.once("close", () => clearInterval(timer));
};
