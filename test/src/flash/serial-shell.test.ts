/** `blindrelay shell AGENT --serial`: a terminal on a remote port, through bridge and relay. */
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import { BoardCable } from "@blindrelay/tools/testing/repl/pty";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";

const house = new House();
const double = new EspruinoDouble();
const cable = new BoardCable(double, house.path("tty"));

beforeAll(async () => {
  await house.open();
  await cable.plug();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  const added = await house.cli(["agent", "add", "b", "--id", "far-1", "--env", "--json"]);
  const { api_token, agent_token } = JSON.parse(added.stdout);
  const bridge = house.start(["bridge", cable.path, "--mode", "raw", "--json"], {
    BLINDRELAY_URL: house.url,
    BLINDRELAY_AGENT_ID: "far-1",
    BLINDRELAY_RELAY_TOKEN: api_token,
    BLINDRELAY_AGENT_TOKEN: agent_token,
    BLINDRELAY_STATE_DIR: house.path("state"),
  });
  await bridge.line();
  const ping = await house.cli(["call", "far-1", "serial.status", "--wait", "--timeout", "120"]);
  expect([ping.code, ping.stderr]).toEqual([0, ""]);
});

afterAll(async () => {
  await house.close();
  await cable.end();
  double.end();
});

it("sends input to the device and shows its output", async () => {
  const args = ["shell", "far-1", "--serial", "--baud", "115200"];
  const shell = house.start(args, {}, "print(6*7)\n");
  let line = "";
  while (!line.endsWith("42")) line = await shell.line();
  expect((await shell.stop("SIGINT")).code).toBe(0);
});
