/**
 * A network serial server that vanishes without a word while commands go out, in a network of its
 * own.
 *
 * eclipse-mosquitto/mosquitto#2230, Koenkk/zigbee2mqtt#17715, cminyard/ser2net#33
 */
import { execFileSync, spawnSync } from "node:child_process";
import { endianness } from "node:os";
import { expect, it } from "vitest";
import { addressIn } from "./tcp.ts";

const HAS_NETWORKS =
  spawnSync("unshare", ["-n", "ip", "link", "set", "lo", "up"], { stdio: "ignore" }).status === 0;

const ADDRESS = "10.9.9.1";

/** Prints what was told of a connection while its server was there, and after that. */
const PROGRAM = `
import { execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { tcpOpener } from ${JSON.stringify(import.meta.resolve("./tcp.ts"))};
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const told = [];
const server = createServer((socket) => socket.on("data", () => {}));
await new Promise((resolve) => server.listen(0, "${ADDRESS}", resolve));
const events = { data: () => {}, closed: (reason) => told.push(reason) };
const port = await tcpOpener("${ADDRESS}", server.address().port, 1_000)({}, events);
const poll = async (times) => {
  for (let i = 0; i < times && told.length === 0; i++) {
    await port.write(Buffer.from("M105\\n")).catch(() => {});
    await wait(100);
  }
};
await poll(25);
const early = told.length;
execFileSync("ip", ["addr", "del", "${ADDRESS}/32", "dev", "lo"]);
await poll(200);
console.log(JSON.stringify({ early, told }));
process.exit();
`;

it.skipIf(!HAS_NETWORKS)(
  "a connection is lost when nothing is acknowledged, and not before (needs root, unshare and ip)",
  () => {
    const prepare = `ip link set lo up; ip addr add ${ADDRESS}/32 dev lo; exec "$@"`;
    const node = [process.execPath, "--input-type=module", "-e", PROGRAM];
    const said = execFileSync("unshare", ["-n", "sh", "-c", prepare, "sh", ...node], {
      encoding: "utf8",
    });
    expect(JSON.parse(said)).toEqual({
      early: 0,
      told: [expect.stringMatching(/^10\.9\.9\.1:\d+ has not taken what was sent for 1 s$/)],
    });
  },
);

// A byte order is the machine's own; the tables of other machines are not here to be read.
it.skipIf(endianness() !== "LE")("addresses are read as Linux' tables have them", () => {
  expect(addressIn("0100007F")).toBe("127.0.0.1");
  expect(addressIn("00000000000000000000000001000000")).toBe("[::1]");
  expect(addressIn("0000000000000000FFFF00000109090A")).toBe("[::ffff:a09:901]");
  expect(addressIn("000080FE00000000FF00005FFE3412FE")).toBe("[fe80::5f00:ff:fe12:34fe]");
});
