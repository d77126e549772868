/** `blindrelay attach`: a bridged serial port for any program of this machine. */
import { Option } from "commander";
import type { Command } from "../base/command.ts";
import type { AttachFlags } from "./attach-run.ts";
import type { Context } from "./context.ts";

export const addAttach = (cli: Command, context: Context): void => {
  cli
    .command("attach")
    .description("use a bridged serial port as a local one, until Ctrl-C or SIGTERM")
    .argument("<agent>", "the agent's id: a bridge with --mode raw")
    .argument("[port]", "which of its ports, if it has several")
    .option("--pty <path>", "a pseudo-terminal under this path (Linux, macOS)")
    .option("--rfc2217 <[host:]port>", "listen for one tool at a time, with all line settings")
    .option("--tcp <[host:]port>", "listen for one program at a time, as plain bytes")
    .option("--stdio", "standard input and output")
    .option("--expose", "let --rfc2217 and --tcp listen on a host that others reach")
    .option("--watch", "only read, beside the one who writes")
    .option("--takeover", "take the place of the one who writes, if the port's access allows it")
    .addOption(
      new Option(
        "--on-loss <what>",
        "what a lost port does to its programs; wait by default",
      ).choices(["wait", "close"]),
    )
    .option("--record <file>", "write both directions with times; blindrelay inspect reads it")
    .option("--json", "one JSON document per change on standard output; not with --stdio")
    .example(`
  blindrelay attach printer-1 --pty ./ttyPrinter
  blindrelay attach esp-3 --rfc2217 4000 & esptool --port rfc2217://127.0.0.1:4000 flash-id
  blindrelay attach console-9 --stdio --watch
  blindrelay attach rack usb:A50285BI --tcp 4001

The port stays while a link, the relay, the bridge or the device is away, and works again by itself;
bytes that are lost are reported by number. Exit codes: 2 usage, 4 the relay or the agent cannot be
reached, 5 refused, 7 no raw bridge, no such port, or a port in use.`)
    .action(async (agentId: string, port: string | undefined, flags: AttachFlags) => {
      const { attach } = await import("./attach-run.ts");
      await attach(context.settings(), agentId, port, flags);
    });
};
