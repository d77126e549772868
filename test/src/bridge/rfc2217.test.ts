/**
 * A remote port server, and a terminal elsewhere: rate and control lines are passed all the way.
 */
import type { Server } from "node:net";
import { portServer } from "@blindrelay/tools/testing/serial/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BridgeHouse, newsOf } from "./world.ts";

/** RFC 2217 section 3. */
const SET_BAUD_RATE = 1;
const SET_CONTROL = 5;
const [BREAK_ON, DTR_OFF, RTS_ON] = [5, 9, 11];

const world = new BridgeHouse();
const told: number[][] = [];
let server: Server;

beforeAll(async () => {
  await world.open();
  const listening = await portServer(told);
  server = listening.server;
  await world.add("plc");
  const port = `rfc2217://127.0.0.1:${listening.port}`;
  // Its secrets come from the profile.
  const flags = ["--mode", "raw", "--agent", "plc", "--json"];
  await newsOf(world.house.start(["bridge", port, ...flags]), "agent", "online");
});
afterAll(async () => {
  await world.close();
  server.close();
});

it("a remote terminal sets them first, and input that was piped in before it opened arrives", async () => {
  told.length = 0;
  const flags = ["--serial", "--baud", "9600", "--dtr", "off", "--rts", "on"];
  const terminal = world.house.start(["shell", "plc", ...flags], {}, "hello\n");
  expect(await terminal.line()).toBe("hello"); // the server echoes
  expect(told.filter(([command]) => command === SET_BAUD_RATE)).toEqual([[1, 0, 0, 0x25, 0x80]]);
  const lines = told.filter(([command, value = 0]) => command === SET_CONTROL && value >= BREAK_ON);
  expect(lines).toEqual([
    [SET_CONTROL, DTR_OFF],
    [SET_CONTROL, RTS_ON],
  ]);
  const status = await world.house.cli(["call", "plc", "serial.status"]);
  // The server reported that all three are on.
  expect(JSON.parse(status.stdout)).toMatchObject({
    baud_rate: 9600,
    cts: true,
    dsr: true,
    dcd: true,
  });
  expect((await terminal.stop("SIGINT")).code).toBe(0);
});
