/** The Wi-Fi for a board: its name from a flag, its password from standard input. */
import { Failure } from "@blindrelay/protocol/command-line";
import { firstLines } from "./first-lines.ts";
import { questions } from "./prompt.ts";

export interface Wifi {
  readonly ssid: string;
  /** "" for an open network. */
  readonly password: string;
}

const SSID_MAX_BYTES = 32;

/**
 * What is wrong with a network's name or password, without the password; null if they are valid.
 */
export const wifiProblem = ({ ssid, password }: Wifi): string | null => {
  const bytes = Buffer.byteLength(ssid);
  if (bytes < 1 || bytes > SSID_MAX_BYTES) {
    return `a Wi-Fi's name has 1 to ${SSID_MAX_BYTES} bytes, this one ${bytes}`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\x00-\x1f\x7f]/.test(ssid)) return "a Wi-Fi's name has no control characters";
  if (password === "" || /^[ -~]{8,63}$/.test(password)) return null;
  return `a Wi-Fi's password has 8 to 63 ASCII characters, this one ${password.length}, or some that are not printable ASCII; give an empty one for an open network`;
};

const checked = (wifi: Wifi): Wifi => {
  const problem = wifiProblem(wifi);
  if (problem !== null) throw new Failure("usage", problem);
  return wifi;
};

/**
 * Asks for the password at a terminal, without showing it; otherwise reads it from the first line
 * of standard input. Throws a Failure (usage) if name or password are invalid, or there is no line.
 */
export const readWifi = async (ssid: string): Promise<Wifi> => {
  checked({ ssid, password: "" });
  if (process.stdin.isTTY !== true) {
    const [password] = await firstLines(process.stdin, 1);
    if (password === undefined) {
      throw new Failure("usage", "there is no password: send an empty line for an open network");
    }
    return checked({ ssid, password });
  }
  const person = questions("give the Wi-Fi's password on standard input");
  try {
    const password = await person.askHidden(`Password of Wi-Fi "${ssid}" (empty if it has none): `);
    return checked({ ssid, password });
  } finally {
    person.close();
  }
};
