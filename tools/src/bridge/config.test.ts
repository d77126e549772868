/** The configuration file: what is refused, with its place; and the bundled examples. */
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeToken } from "@blindrelay/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { otherReadersOf } from "../config/file-readers.ts";
import { byAgent, readBridgeConfig } from "./config.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, value: unknown, mode = 0o600): string => {
  const path = join(folder, name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  chmodSync(path, mode);
  return path;
};

const token = (kind: "agent" | "e2e", byte: number) =>
  makeToken(kind, new Uint8Array(32).fill(byte));

const credentials = (id: string, byte = 1) => ({
  agent_id: id,
  api_token: token("agent", byte),
  agent_token: token("e2e", byte + 1),
  packet_version: "1",
});

const RAW = { port: "/dev/ttyUSB0", mode: "raw", credentials: "a.json", state_dir: "a" };

const LINES = { mode: "lines", mapping: "printer-lines.json" };

const problemOf = (ports: unknown[]): string => {
  try {
    readBridgeConfig(write("bridge.json", { ports }));
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

it.each([
  ["/dev/ttyUSB0", { dtr: false, rts: false, hupcl: false }, ""],
  ["rfc2217://server:1", { dtr: false, rts: true }, ""],
  ["rfc2217://server:1", { hupcl: false }, "set it at the port server"],
  ["tcp://server:1", { dtr: false }, "plain TCP has no DTR and RTS"],
  ["tcp://server:1", { hupcl: true }, "hupcl is for a port of this machine"],
  ["/dev/ttyUSB0", { dtr: "off" }, "/ports/0/dtr must be boolean"],
])("lines at %s: %j: %s", (port, lines, problem) => {
  write("a.json", credentials("a"));
  const said = problemOf([{ ...RAW, port, ...lines }]);
  if (problem === "") expect(said).toBe("");
  else expect(said).toContain(problem);
});

// opensteno/plover#876, pyserial/pyserial#345
it.each([
  [{ flow_control: "xon" }, "ports[0]: mode sealed uses every byte"],
  [{ data_bits: 7 }, "ports[0]: mode sealed needs 8 data bits"],
  [{ flow_control: "rts" }, ""],
])("a sealed port with %j: %s", (settings, problem) => {
  const said = problemOf([{ port: "/dev/ttyUSB0", mode: "sealed", ...settings }]);
  expect(said.slice(0, problem.length || undefined)).toBe(problem);
});

it("reads the bundled examples", () => {
  for (const name of ["bridge.json", "printer-lines.json"]) {
    cpSync(new URL(name, EXAMPLES), join(folder, name));
  }
  write("printer.json", credentials("printer", 1));
  write("switch.json", credentials("switch", 3));
  const { relay, ports } = readBridgeConfig(join(folder, "bridge.json"));
  expect(relay).toBe("https://relay.example");
  expect(ports.map(({ name, mode, address }) => [name, mode.kind, address.kind])).toEqual([
    ["greenhouse board", "sealed", "serial"],
    ["3D printer", "lines", "usb"],
    ["switch console", "raw", "rfc2217"],
  ]);
  expect(ports[2]?.settings.baudRate).toBe(9600);
});

it("resolves paths relative to the file", () => {
  write("a.json", credentials("a"));
  const [port] = readBridgeConfig(write("bridge.json", { ports: [RAW] })).ports;
  expect(port?.mode).toMatchObject({ kind: "raw", stateDir: join(folder, "a") });
});

it.each([
  [[], "/ports"],
  [[{ ...RAW, speed: 1 }], "/ports/0"],
  [[{ ...RAW, port: "http://x" }], "not a port: http://x"],
  [[{ ...RAW, baud_rate: 3 }], "ports[0]: baud_rate cannot be 3"],
  [[{ ...RAW, credentials: undefined }], "ports[0]: credentials is missing"],
  [[{ ...RAW, credentials: "none.json" }], "none.json cannot be read"],
  [[{ ...RAW, mode: "lines" }], "ports[0]: mapping is missing"],
  [[RAW, { ...RAW, port: "/dev/ttyUSB1", state_dir: "b" }], "they need the same state_dir"],
  [
    [RAW, { ...RAW, port: "/dev/ttyUSB1", credentials: "b.json" }],
    "they need the same credentials",
  ],
  [[RAW, { ...RAW, port: "/dev/ttyUSB1", ...LINES }], "agent a: only mode raw allows that"],
  [
    [
      { ...RAW, name: "b" },
      { ...RAW, port: "usb:A1", name: RAW.port },
    ],
    "is another port",
  ],
  [Array.from({ length: 65 }, (_, n) => ({ ...RAW, port: `/dev/ttyS${n}` })), "it can have 64"],
  [
    [
      { port: "/dev/x", mode: "sealed" },
      { port: "/dev/x", mode: "sealed" },
    ],
    "the same name /dev/x",
  ],
])("reports the problem and its place: %j", (ports, text) => {
  write("a.json", credentials("a"));
  write("b.json", credentials("a", 7));
  cpSync(new URL("printer-lines.json", EXAMPLES), join(folder, "printer-lines.json"));
  expect(problemOf(ports)).toContain(text);
});

it("several raw ports have one agent, and are called by their own names", () => {
  write("a.json", credentials("a"));
  const more = [RAW, { ...RAW, port: "usb:A1", name: "console", baud_rate: 9_600 }];
  const { ports } = readBridgeConfig(write("bridge.json", { ports: more }));
  expect(ports.map(({ name, port }) => [name, port])).toEqual([
    ["/dev/ttyUSB0", "/dev/ttyUSB0"],
    ["console", "usb:A1"],
  ]);
  expect(byAgent(ports)).toEqual([ports]);
});

it("refuses secrets that others can read, and of the wrong kind, without showing them", () => {
  write("a.json", credentials("a"), 0o644);
  expect(problemOf([RAW])).toContain("chmod 600");
  const swapped = { ...credentials("a"), api_token: token("e2e", 1) };
  write("a.json", swapped);
  const problem = problemOf([RAW]);
  expect(problem).toContain("api_token");
  expect(problem).not.toContain(swapped.api_token);
  const broken = `{"agent_token": "${swapped.api_token}`;
  write("a.json", broken);
  expect(problemOf([RAW])).toContain("is invalid JSON (line ");
  expect(problemOf([RAW])).not.toContain("e2e_");
});

// As in kubernetes/website#37388.
it("takes secrets that a group can read, as in a Kubernetes volume, and says so", () => {
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  for (const mode of [0o440, 0o640]) {
    write("a.json", credentials("a"), mode);
    expect(readBridgeConfig(write("bridge.json", { ports: [RAW] })).ports).toHaveLength(1);
  }
  expect(said.mock.calls.flat().join("")).toMatch(/^(warning: a group can read the .*\n){2}$/);
});

it("does not believe the mode bits that Windows reports", () => {
  write("a.json", credentials("a"), 0o666);
  expect(otherReadersOf(join(folder, "a.json"), "win32")).toBeNull();
  expect(otherReadersOf(join(folder, "a.json"), "linux")).toBe("everybody");
});

it("the unit starts the tested command, and does not restart what needs a person", () => {
  const unit = readFileSync(
    new URL("../../systemd/blindrelay-bridge.service", import.meta.url),
    "utf8",
  );
  expect(unit).toContain("blindrelay bridge --config /etc/blindrelay-bridge/bridge.json");
  expect(unit).toMatch(/^RestartPreventExitStatus=2 5 7$/m);
});
