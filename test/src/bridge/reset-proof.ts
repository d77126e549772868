/**
 * By hand: pyserial's own RFC 2217 client (Debian's python3-serial) resets a chip into its boot
 * loader through `blindrelay attach`, as esptool does, with a delay each way.
 *
 *   node test/src/bridge/reset-proof.ts --times 50 --delay 100 --rise 5
 */
import { spawn } from "node:child_process";
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
    good += answer in port.read(len(answer) + 9)
print(good, "of", times, "cts", port.cts)
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
  const [sync, answer] = [SYNC_REQUEST, SYNC_ANSWER].map((bytes) => bytes.toString("hex"));
  const words = ["-c", TOOL, String(where), values.times, sync ?? "", answer ?? ""];
  const tool = spawn("/usr/bin/python3", words, { stdio: "inherit" });
  await new Promise((resolve) => tool.once("exit", resolve));
  console.log(JSON.stringify({ resets: chip.resets }));
} finally {
  server.close();
  await world.close();
  await way.close();
}
process.exit();
