/** What Enter sends, what an echo shows, and what of a device's output is shown. */
import { expect, it } from "vitest";
import { asEcho, Output, withEol } from "./monitor.ts";

it.each([
  ["cr", "LAMP 1\r"],
  ["lf", "LAMP 1\n"],
  ["crlf", "LAMP 1\r\n"],
] as const)("Enter is %s", (eol, sent) => {
  expect(withEol(Buffer.from("LAMP 1\r"), eol).toString()).toBe(sent);
});

it("other bytes are sent as they are typed", () => {
  const typed = Buffer.from([0, 3, 10, 127, 128, 255]);
  expect(withEol(typed, "crlf")).toEqual(typed);
});

it("an echo begins a new line at Enter, and removes what is deleted", () => {
  expect(asEcho(Buffer.from("ab\x7f\rü"))).toBe("ab\b \b\r\nü");
});

const shown = (bytes: Buffer, size: number, json: boolean, isTerminal: boolean): string => {
  let text = "";
  const output = new Output(json, isTerminal, (more) => {
    text += more;
  });
  for (let at = 0; at < bytes.length; at += size) output.receive(bytes.subarray(at, at + size));
  output.end();
  return text;
};

// microsoft/vscode-serial-monitor#90, arduino/arduino-ide#589
it("characters and control sequences are shown as sent, whatever the pieces", () => {
  const text = "\x1b[0;32mI (5) main: 21 °C, Tür zu, 5 €, 🌱\x1b[0m\r\nlogin: ";
  const plain = "I (5) main: 21 °C, Tür zu, 5 €, 🌱";
  for (let size = 1; size < 70; size++) {
    const bytes = Buffer.from(text);
    expect(shown(bytes, size, false, true)).toBe(text);
    expect(shown(bytes, size, false, false)).toBe(`${plain}\nlogin: \n`);
    expect(shown(bytes, size, true, false)).toBe(`{"line":"${plain}"}\n{"line":"login: "}\n`);
  }
});

it("control sequences that are not shown are removed whole, whatever the pieces", () => {
  const bash = "\x1b[?2004h\x1b]0;root@pi: ~\x07\x1b[1;32mroot@pi\x1b(B\x1b[m:~# ls\x1b[?2004l\r\n";
  const others = "\x1b7\x1b[2;10r\x1b[>c\x1b[4 q\x1bPq#0;1\x1b\\\x1b]52;c;ZXZpbA==\x1b\\\x1b=\x1bc";
  for (let size = 1; size < 40; size++) {
    const all = Buffer.from(`${bash}${others}ready\r\n`);
    expect(shown(all, size, false, true)).toBe("\x1b[1;32mroot@pi\x1b[m:~# ls\r\nready\r\n");
    expect(shown(all, size, false, false)).toBe("root@pi:~# ls\nready\n");
    // One that does not end takes no line with it, and what is shown cannot act.
    const open = Buffer.from("\x1b]0;title\r\nready\r\n\x1bPq");
    expect(shown(open, size, false, true)).toBe("]0;title\r\nready\r\nPq");
    for (const isTerminal of [false, true]) {
      const noise = Buffer.from(`\x1b^${"boot menu: press a key> ".repeat(20)}`);
      expect(shown(noise, size, false, isTerminal).trim()).toBe(`${noise}`.slice(1).trim());
    }
  }
});

it("bytes that are not UTF-8 are shown as ISO 8859-1", () => {
  for (const text of ["21 °C\r\n", "T\xfcr\n", "\xff\xfe\xe4\n"]) {
    expect(shown(Buffer.from(text, "latin1"), 100, false, true)).toBe(text);
  }
});

it("lines of a trace are shown with their sources, whatever the pieces", () => {
  const text = ">f()\r\n    at f (program:1:2)\r\n\r\n ^\r\n    a table\r\n  >";
  const wanted = text.replace("program:1:2", "pump.js:3:4");
  for (let size = 1; size < text.length; size++) {
    let shown = "";
    const write = (more: string): void => {
      shown += more;
    };
    const translate = (line: string): string => line.replace("program:1:2", "pump.js:3:4");
    const output = new Output(false, true, write, translate);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) output.receive(bytes.subarray(at, at + size));
    expect(shown).toBe(wanted);
    output.end();
    expect(shown).toBe(wanted);
  }
});

it("a device without line ends is shown in pieces, and nothing of it is kept", () => {
  const pieces: number[] = [];
  const output = new Output(false, false, (more) => pieces.push(more.length));
  for (let n = 0; n < 100; n++) output.receive(Buffer.alloc(4_096, "x"));
  expect(pieces.length).toBeGreaterThan(4);
  output.end();
  expect(pieces.reduce((sum, length) => sum + length - 1, 0)).toBe(409_600);
});
