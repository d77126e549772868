/** The devices of docs/recipes.md at the other end of a cable: they behave as the document says. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import { BoardCable } from "@blindrelay/tools/testing/repl/pty";
import { Cable } from "@blindrelay/tools/testing/serial/pty";

/** Of the document's Wi-Fi. */
export const WIFI_PASSWORD = "a long password";

/** From one press of the button to the next. */
const PRESS_MS = 200;

/** A connected device: its terminal, and a function that unplugs it. */
export interface Plugged {
  readonly path: string;
  pull(): Promise<void>;
}

/** The sketch of the first recipe. */
const plugArduino = async (): Promise<Plugged> => {
  const cable = new Cable();
  const socket = await cable.plug();
  let heard = "";
  cable.received = (bytes) => {
    heard += bytes.toString("latin1");
    const lines = heard.split("\n");
    heard = lines.pop() ?? "";
    for (const line of lines) {
      const [verb] = line.split(" ");
      socket.write(verb === "LAMP" ? "ok\r\n" : verb === "READ" ? "A=512\r\n" : "error what\r\n");
    }
  };
  // It is pressed repeatedly, so that a late listener gets the next press.
  const finger = setInterval(() => socket.write("BUTTON 1\r\n"), PRESS_MS);
  const pull = async (): Promise<void> => {
    clearInterval(finger);
    await cable.end();
  };
  return { path: cable.path, pull };
};

/** A console that echoes, with a prompt. */
const plugSwitch = async (): Promise<Plugged> => {
  const cable = new Cable();
  const socket = await cable.plug();
  let line = "";
  cable.received = (bytes) => {
    for (const character of bytes.toString("latin1")) {
      if (character !== "\r") {
        line += character;
        socket.write(character);
        continue;
      }
      socket.write(line === "show version" ? "\r\nswitch OS 4.2\r\nswitch> " : "\r\nswitch> ");
      line = "";
    }
  };
  return { path: cable.path, pull: () => cable.end() };
};

/** An Espruino within range of the document's Wi-Fi. */
const plugBoard = async (): Promise<Plugged> => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-board-"));
  const board = new EspruinoDouble({ air: { ssid: "hall 7", password: WIFI_PASSWORD } });
  const cable = new BoardCable(board, join(folder, "tty"));
  await cable.plug();
  const pull = async (): Promise<void> => {
    board.end();
    await cable.end();
    rmSync(folder, { recursive: true, force: true });
  };
  return { path: cable.path, pull };
};

export const DEVICES: { readonly [title: string]: () => Promise<Plugged> } = {
  "An Arduino with a line protocol": plugArduino,
  "A remote serial terminal": plugSwitch,
  "A board on the desk": plugBoard,
};
