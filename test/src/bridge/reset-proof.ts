/**
 * By hand: pyserial's own RFC 2217 client (Debian's python3-serial) resets a chip into its boot
 * loader through `blindrelay attach`, as esptool does, with a delay each way.
 *
 *   node test/src/bridge/reset-proof.ts --times 50 --delay 100 --rise 5
 *
 * With `--esptool` it is esptool's own code (`PYTHONPATH` for one that is not installed), which
 * gets one reset each time, and then the program as users call it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { esp32, SYNC_ANSWER, SYNC_REQUEST } from "@blindrelay/tools/testing/serial/esp32";
import { SlowWay } from "../instruments/slow-way.ts";
import { BridgeHouse, newsOf } from "./world.ts";

const { values } = parseArgs({
  options: {
    times: { type: "string", default: "50" },
    delay: { type: "string", default: "100" },
    /** Milliseconds that the chip's EN takes to rise. */
    rise: { type: "string", default: "5" },
    esptool: { type: "boolean", default: false },
  },
});

const TOOL = `
import serial, sys, time
url, times, sync, answer = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3]), bytes.fromhex(sys.argv[4])
port = serial.serial_for_url(url, baudrate=115200, parity="E", stopbits=2, timeout=5)
port.parity, port.stopbits, good = "N", 1, 0
for n in range(times):
    port.dtr = False; port.rts = True; time.sleep(0.1)
    port.dtr = True; port.rts = False; time.sleep(0.05)
    port.dtr = False
    port.reset_input_buffer()
    port.write(sync)
    came = port.read(8 * (len(answer) + 9))
    if came.count(answer) == 8: good += 1
    else: print("reset", n + 1, "was answered with", len(came), "bytes", flush=True)
print(good, "of", times, flush=True)
print("cts", port.cts)
`;

const ESPTOOL = `
import sys
from esptool.targets import ESP32ROM
loader, times, good = ESP32ROM(sys.argv[1], 115200), int(sys.argv[2]), 0
for n in range(times):
    try:
        loader.connect("default_reset", attempts=1, detecting=True)
        good += 1
    except Exception as error:
        print(error)
print(good, "of", times)
`;

const { server, port, chip } = await esp32(Number(values.rise));
const world = new BridgeHouse();
await world.open();
const way = new SlowWay(world.house.url, Number(values.delay));
try {
  await world.house.cli(["profile", "set-url", await way.open()]);
  const added = await world.add("esp");
  const bridged = { port: `rfc2217://127.0.0.1:${port}`, mode: "raw" };
  await newsOf(world.bridge(added, bridged), "agent", "online");
  const running = world.house.start(["attach", "esp", "--rfc2217", "0", "--json"]);
  const { where } = await newsOf(running, "attached");
  const run = async (file: string, words: readonly string[]): Promise<number> => {
    const env = { ...process.env, ESPTOOL_CFGFILE: world.house.path("esptool.cfg") };
    const tool = spawn(file, words, { stdio: "inherit", env });
    const [code] = await once(tool, "exit");
    return code;
  };
  const times = Number(values.times);
  const python = (...words: readonly string[]) => run("/usr/bin/python3", words);
  if (values.esptool) {
    world.house.write("esptool.cfg", "[esptool]\nsync_timeout = 1\n");
    await python("-c", ESPTOOL, String(where), `${times}`);
    const flags = ["--chip", "esp32", "--port", String(where), "--no-stub"];
    console.log(`esptool ended with ${await python("-m", "esptool", ...flags, "read_mac")}`);
  } else {
    const [sync, answer] = [SYNC_REQUEST, SYNC_ANSWER].map((bytes) => bytes.toString("hex"));
    await python("-c", TOOL, String(where), `${times}`, sync ?? "", answer ?? "");
  }
  console.log(JSON.stringify({ resets: chip.resets, into_the_loader: chip.loads }));
} finally {
  server.close();
  await world.close();
  await way.close();
}
process.exit();
