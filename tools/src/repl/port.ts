/**
 * A board's port for its prompt: any address of serial/, failures with their fix as exit codes, and
 * bytes sent no faster than the line, because XOFF does not stop what is in the system's buffer.
 */

import { type Port, paced, type ReplPortEvents } from "@blindrelay/agent-sdk/board";
import { messageOf, type OpeningLines } from "@blindrelay/agent-sdk/bridge";
import { Failure } from "@blindrelay/protocol/command-line";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { ADDRESS_FORMS, parseAddress } from "../serial/address.ts";
import { linesProblem, openerFor } from "../serial/open.ts";

export const DEFAULT_BAUD_RATE = DEFAULT_SETTINGS.baudRate;
const BITS_PER_BYTE = 10; // with start and stop bit

const DEAF: ReplPortEvents = { received: () => undefined, closed: () => undefined };

const FIXES: readonly (readonly [RegExp, (name: string) => string])[] = [
  [
    /permission denied|EACCES/i,
    (name) =>
      `no permission on ${name}: add yourself to its group (sudo usermod -aG dialout $USER), then log in again`,
  ],
  [
    /no such file|ENOENT|ENXIO|no such device|file not found|no adapter/i,
    (name) => `there is no port ${name}: \`blindrelay devices\` lists those that are there`,
  ],
  [
    /lock|busy|EBUSY/i,
    (name) => `${name} is in use: close the other program that has it open (a terminal, a bridge)`,
  ],
  [
    /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|does not answer/,
    (name) =>
      `nobody listens at ${name}: is the board on the network, with its console on that port?`,
  ],
];

/** The system's error for a port that does not open, with a fix. */
export const openFailure = (name: string, error: unknown): Failure => {
  const text = messageOf(error);
  const fix = FIXES.find(([pattern]) => pattern.test(text))?.[1];
  return new Failure("device", fix?.(name) ?? `${name} does not open: ${text}`, error);
};

export interface PortFlags extends OpeningLines {
  readonly baud: number;
}

/** Opens a port by its address. Rejects with a Failure that names the fix. */
export const openPort = async (
  name: string,
  line: PortFlags = { baud: DEFAULT_BAUD_RATE },
): Promise<Port> => {
  const { baud: baudRate } = line;
  const address = parseAddress(name);
  if (address === null) throw new Failure("usage", `not a port (${ADDRESS_FORMS}): ${name}`);
  const problem = linesProblem(address, line);
  if (problem !== null) throw new Failure("usage", problem);
  const byteMs = address.kind === "tcp" ? 0 : (BITS_PER_BYTE * 1000) / baudRate;
  const pace = paced(byteMs);
  let closing = false;
  const opened = await openerFor(address, line)(
    { ...DEFAULT_SETTINGS, baudRate },
    {
      data: (bytes) => port.events.received(bytes),
      closed: (reason) => {
        if (!closing) port.events.closed(reason);
      },
    },
  ).catch((error) => {
    throw openFailure(name, error);
  });
  const port: Port = {
    name,
    events: DEAF,
    write: async (bytes) => {
      try {
        await opened.write(bytes);
      } catch (error) {
        const text = `${name} disconnected: plug the board in again and repeat the command`;
        throw new Failure("device", text, error);
      }
      await pace(bytes.length);
    },
    close: () => {
      closing = true;
      return opened.close();
    },
  };
  return port;
};
