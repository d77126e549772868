/** The devices of docs/recipes.md at the other end of a cable: they speak as the page says. */
import type { Socket } from "node:net";
import type { Cable } from "@blindrelay/tools/testing/serial/pty";

/** From one press of the button to the next. */
const PRESS_MS = 200;

/** The sketch of the first recipe. Returns what ends it. */
export const playArduino = (cable: Cable, socket: Socket): (() => void) => {
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
  // It is pressed again and again: whoever listens hears the next one.
  const finger = setInterval(() => socket.write("BUTTON 1\r\n"), PRESS_MS);
  return () => clearInterval(finger);
};

/** A console that echoes, with a prompt. Nothing of it needs an end. */
export const playSwitch = (cable: Cable, socket: Socket): (() => void) => {
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
  return () => undefined;
};
