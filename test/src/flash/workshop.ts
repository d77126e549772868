/** Boards' doubles on ptys, a relay and the command, for one test file. */
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import type { DoubleOptions } from "@blindrelay/tools/testing/repl/options";
import { BoardCable } from "@blindrelay/tools/testing/repl/pty";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type Ended, House, PASSWORD } from "../cli/processes.ts";

export const PROGRAM = `
/** A lamp. */
export default (agent) => {
  let on = false;
  agent.handle("led.set", (params) => {
    on = params.on === true; // as told
    return { on: on };
  });
  agent.handle("echo", (params) => params);
};
`;
export const FAST = ["--baud", "921600"];

/** Resolves when the board writes this file. */
export const written = ({ storage }: EspruinoDouble, file: string): Promise<void> =>
  new Promise((resolve) => {
    storage.onWrite = (name) => {
      if (name === file) resolve();
    };
  });

/**
 * Opened before the file's tests and closed after them; what is attached to it ends with each test.
 */
export const openWorkshop = () => {
  const house = new House();
  const lamp = house.write("lamp.js", PROGRAM);
  const ends: (() => unknown)[] = [];
  let boards = 0;

  beforeAll(async () => {
    await house.open();
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
  });

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  afterAll(() => house.close());

  /** A board and its pty. */
  const plugIn = async (options: Partial<DoubleOptions> = {}) => {
    const double = new EspruinoDouble(options);
    const port = house.path(`tty${boards++}`);
    const cable = new BoardCable(double, port);
    ends.push(
      () => double.end(),
      () => cable.end(),
    );
    await cable.plug();
    return { double, cable, port };
  };

  const provision = (port: string, id: string, more: string[] = []): Promise<Ended> =>
    house.cli(["provision", port, "--id", id, "--json", ...FAST, ...more]);

  const flash = (port: string, more: string[] = [], program = lamp): Promise<Ended> =>
    house.cli(["flash", port, "--program", program, "--json", ...FAST, ...more]);

  const secretsOf = async (id: string): Promise<string[]> => {
    const { stdout } = await house.cli(["agent", "export", id, "--json"]);
    const { api_token, agent_token } = JSON.parse(stdout);
    return [api_token, agent_token];
  };

  return { house, lamp, ends, plugIn, provision, flash, secretsOf };
};
