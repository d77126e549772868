/** The Wi-Fi for a board: its name from a flag, its password from standard input. */
import { type Wifi, wifiProblem } from "@blindrelay/agent-sdk/board";
import { Failure } from "@blindrelay/protocol/command-line";
import { asking } from "@blindrelay/protocol/prompt";
import { firstLines } from "./first-lines.ts";

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
  const password = await asking("give the Wi-Fi's password on standard input", (person) =>
    person.askHidden(`Password of Wi-Fi "${ssid}" (empty if it has none): `),
  );
  return checked({ ssid, password });
};
