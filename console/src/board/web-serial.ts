/** A port of the browser's Web Serial (https://wicg.github.io/serial/) for a board's prompt. */
import { BoardFailure, type Port, paced } from "@blindrelay/agent-sdk/board";

/** The part of the standard's SerialPort that is used here: TypeScript's DOM does not have it. */
export interface WebSerialPort {
  readonly readable: ReadableStream<Uint8Array> | null;
  readonly writable: WritableStream<Uint8Array> | null;
  open(options: { readonly baudRate: number; readonly bufferSize?: number }): Promise<void>;
  close(): Promise<void>;
}

/** The same of `navigator.serial`. */
export interface WebSerial {
  /** Rejects with a DOMException (NotFoundError) if the user chooses none. */
  requestPort(): Promise<WebSerialPort>;
}

/** What Espruino's console runs at; over USB it does not matter. */
const BAUD_RATE = 115_200;
const BYTE_MS = (10 * 1000) / BAUD_RATE;
/** What may arrive while the page is busy. */
const BUFFER_BYTES = 65_536;

/** Opens it. Rejects with a DOMException where another program has it. */
export const openWebPort = async (serial: WebSerialPort): Promise<Port> => {
  await serial.open({ baudRate: BAUD_RATE, bufferSize: BUFFER_BYTES });
  let closing = false;
  let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  const writer = serial.writable?.getWriter();
  const pace = paced(BYTE_MS);

  /** Until it is closed or lost. A bit that was read wrong ends a stream; the next one follows. */
  const readAll = async (): Promise<void> => {
    let reason = "";
    while (serial.readable !== null && !closing) {
      reader = serial.readable.getReader();
      try {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          port.events.received(value);
        }
      } catch (error) {
        reason = (error as Error).message;
      } finally {
        reader.releaseLock();
      }
    }
    if (!closing) port.events.closed(reason);
  };

  const port: Port = {
    name: "the port",
    events: { received: () => undefined, closed: () => undefined },
    write: async (bytes) => {
      try {
        await writer?.write(bytes);
      } catch (error) {
        throw new BoardFailure("gone", "the port is lost", error);
      }
      await pace(bytes.length);
    },
    close: async () => {
      if (closing) return;
      closing = true;
      await reader?.cancel().catch(() => undefined);
      await reading;
      writer?.releaseLock();
      await serial.close().catch(() => undefined); // lost
    },
  };
  const reading = readAll();
  return port;
};
