/** `blindrelay bridge`: serial devices as agents, until Ctrl-C or SIGTERM. */

import { wholeNumber } from "@blindrelay/protocol/command-line";
import { Option } from "commander";
import type { Command } from "../base/command.ts";
import { withLineFlags } from "./board.ts";
import type { BridgeFlags } from "./bridge-run.ts";
import type { Context } from "./context.ts";

export const addBridge = (cli: Command, context: Context): void => {
  const command = cli
    .command("bridge")
    .description("connect serial devices as agents, until Ctrl-C or SIGTERM")
    .argument("[port]", "/dev/tty…, COM3, usb:SERIAL, tcp://host:port or rfc2217://host:port")
    .addOption(new Option("--mode <mode>", "sealed by default").choices(["sealed", "lines", "raw"]))
    .option("--mapping <file>", "the line protocol of mode lines")
    .option("--baud <rate>", "115200 by default", wholeNumber(50, 4_000_000))
    .addOption(
      new Option("--flow-control <kind>", "none by default").choices(["none", "rts", "xon"]),
    );
  withLineFlags(command)
    .option("--agent <agent-id>", "an agent of your account (lines, raw); BLINDRELAY_AGENT_ID")
    .option(
      "--state-dir <dir>",
      "this agent's own folder (lines, raw); BLINDRELAY_STATE_DIR, or next to the profile",
    )
    .option("--config <file>", "many ports in one file, each its own agent or several under one")
    .option("--check", "check the configuration and exit")
    .addOption(
      new Option("--schema <which>", "print a JSON Schema and exit").choices(["config", "mapping"]),
    )
    .option("--json", "one JSON document per change on standard output")
    .addHelpText(
      "after",
      `
Modes:
  sealed  the board runs the SDK; its messages are carried and cannot be read here
  lines   a mapping file turns the board's lines into calls and events
  raw     the port's bytes: blindrelay attach AGENT, blindrelay shell AGENT --serial

Example:
  blindrelay bridge /dev/ttyACM0
  blindrelay bridge /dev/ttyUSB0 --mode lines --mapping printer.json --agent printer-1
  blindrelay bridge --config /etc/blindrelay-bridge/bridge.json

Without a profile, lines and raw need BLINDRELAY_AGENT_ID, _RELAY_TOKEN and _AGENT_TOKEN; with
--config each port names a file with the output of \`blindrelay agent export AGENT --json\`. If a port
disappears, its agent is offline until the port is back. Exit codes: 2 usage,
5 the relay refuses an agent, 7 a state folder does not let an agent start.`,
    )
    .action(async (port: string | undefined, flags: BridgeFlags) => {
      // Its schemas take longer to load than everything else; no other command needs them.
      const { bridge } = await import("./bridge-run.ts");
      await bridge(context.settings, port, flags);
    });
};
