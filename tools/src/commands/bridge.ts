/** `blindrelay bridge`: serial devices as agents, until Ctrl-C or SIGTERM. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { Bridge, type BridgeNews } from "../bridge/bridge.ts";
import {
  BridgeConfig,
  checkIdentity,
  DEFAULT_WRITE_TIMEOUT_MS,
  type PortMode,
  type PortPlan,
  readAddress,
  readBridgeConfig,
  readMappingFile,
} from "../bridge/config.ts";
import { Mapping } from "../bridge/mapping.ts";
import { httpBase, type Settings } from "../config/settings.ts";
import { Failure } from "../failure.ts";
import { answer, answerJson, tell } from "../output.ts";
import { DEFAULT_SETTINGS, type FlowControl, messageOf } from "../serial/port.ts";
import { interrupted } from "./connect.ts";
import type { Context } from "./context.ts";

interface BridgeFlags {
  readonly mode?: "sealed" | "lines" | "raw";
  readonly mapping?: string;
  readonly baud?: number;
  readonly flowControl?: FlowControl;
  readonly stateDir?: string;
  readonly config?: string;
  readonly check?: boolean;
  readonly schema?: "config" | "mapping";
  readonly json?: boolean;
}

const baudRate = (text: string): number => {
  const rate = Number(text);
  if (Number.isInteger(rate) && rate >= 50 && rate <= 4_000_000) return rate;
  throw new InvalidArgumentError("a rate in baud, such as 115200");
};

const identityOf = (settings: Settings) => {
  const agentId = settings.demand("BLINDRELAY_AGENT_ID", "the agent's id");
  const secret = settings.secretOf(agentId);
  const given = {
    agent_id: agentId,
    api_token: settings.demand("BLINDRELAY_RELAY_TOKEN", "the agent's relay token (agt_)"),
    agent_token: secret.agentToken,
    packet_version: secret.version,
  };
  return checkIdentity(given, "the environment");
};

const modeOf = (settings: Settings, flags: BridgeFlags): PortMode => {
  const kind = flags.mode ?? "sealed";
  if (kind !== "lines" && flags.mapping !== undefined) {
    throw new Failure("usage", "--mapping goes with --mode lines");
  }
  if (kind === "sealed") return { kind };
  if (kind === "lines" && flags.mapping === undefined) {
    throw new Failure(
      "usage",
      "--mode lines needs --mapping FILE (blindrelay bridge --schema mapping)",
    );
  }
  const stateDir =
    flags.stateDir ?? settings.demand("BLINDRELAY_STATE_DIR", "this agent's own folder");
  if (kind === "raw") return { kind, identity: identityOf(settings), stateDir };
  return {
    kind,
    mapping: readMappingFile(flags.mapping as string),
    identity: identityOf(settings),
    stateDir,
  };
};

const planOf = (settings: Settings, port: string, flags: BridgeFlags): PortPlan => {
  const address = readAddress(port);
  const mode = modeOf(settings, flags);
  return {
    name: mode.kind === "sealed" ? port : mode.identity.agentId,
    port,
    address,
    settings: {
      ...DEFAULT_SETTINGS,
      ...(flags.baud === undefined ? {} : { baudRate: flags.baud }),
      ...(flags.flowControl === undefined ? {} : { flowControl: flags.flowControl }),
    },
    writeTimeoutMs: DEFAULT_WRITE_TIMEOUT_MS,
    mode,
  };
};

const asText = (news: BridgeNews): string => {
  if (news.event === "agent") {
    const why = news.code === null ? "" : ` (${news.code})`;
    return `${news.name}: ${news.agent_id} is ${news.state}${why}`;
  }
  if (news.state === "open") return `${news.name}: ${news.port} is open`;
  if (news.state === "absent")
    return `${news.name}: ${news.reason}; it is tried again until it is there`;
  return `${news.name}: ${news.port} got lost (${news.reason}) and is opened again when it is back`;
};

/** Runs every port until somebody stops it; rejects where none is left that no person has to mend. */
const run = async (plans: readonly PortPlan[], url: string, json: boolean): Promise<void> => {
  let bridges: Bridge[] = [];
  let failures = 0;
  try {
    await new Promise<void>((resolve, reject) => {
      bridges = plans.map(
        (plan) =>
          new Bridge({
            plan,
            url,
            news: (news) => (json ? answerJson(news) : tell(asText(news))),
            failed: (failure) => {
              failures++;
              // One port's trouble is not the others'.
              if (failures === plans.length) reject(failure);
              else tell(`${plan.name}: ${messageOf(failure)}; this port is given up`);
            },
            log: (level, message, fields) => {
              if (level === "debug" || level === "info") return;
              const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
              tell(`${plan.name}: ${level}: ${message}${more}`);
            },
          }),
      );
      for (const bridge of bridges) bridge.start();
      interrupted().then(resolve);
    });
  } finally {
    await Promise.all(bridges.map((bridge) => bridge.stop()));
  }
};

export const addBridge = (program: Command, context: Context): void => {
  program
    .command("bridge")
    .description("make serial devices agents, until Ctrl-C or SIGTERM")
    .argument("[port]", "/dev/tty…, COM3, usb:SERIAL, tcp://host:port or rfc2217://host:port")
    .addOption(
      new Option("--mode <mode>", "sealed where absent").choices(["sealed", "lines", "raw"]),
    )
    .option("--mapping <file>", "the line protocol of mode lines")
    .option("--baud <rate>", "115200 where absent", baudRate)
    .addOption(
      new Option("--flow-control <kind>", "none where absent").choices(["none", "rts", "xon"]),
    )
    .option("--state-dir <dir>", "the agent's own folder (lines, raw); BLINDRELAY_STATE_DIR")
    .option("--config <file>", "many ports, each its own agent, in one file")
    .option("--check", "check the configuration and end")
    .addOption(
      new Option("--schema <which>", "print a JSON Schema and end").choices(["config", "mapping"]),
    )
    .option("--json", "one JSON document per change on standard output")
    .addHelpText(
      "after",
      `
Modes:
  sealed  the board runs the SDK; its messages are carried and cannot be read here
  lines   the board answers in lines: a mapping file makes them calls and events
  raw     serial.read and serial.write as byte streams: blindrelay shell AGENT --serial

Example:
  blindrelay bridge /dev/ttyACM0
  blindrelay bridge /dev/ttyUSB0 --mode lines --mapping printer.json --state-dir ./printer
  blindrelay bridge --config /etc/blindrelay/bridge.json

lines and raw read BLINDRELAY_AGENT_ID, BLINDRELAY_RELAY_TOKEN and BLINDRELAY_AGENT_TOKEN; with
--config each port names a file as \`blindrelay agent export AGENT --json\` prints it. A port that
vanishes is opened again when it is back, and its agent is offline meanwhile. Exit codes: 2 usage,
5 the relay refuses an agent, 7 a state folder does not let an agent start.`,
    )
    .action(async (port: string | undefined, flags: BridgeFlags) => {
      if (flags.schema !== undefined) {
        answerJson(flags.schema === "config" ? BridgeConfig : Mapping);
        return;
      }
      if ((port === undefined) === (flags.config === undefined)) {
        throw new Failure("usage", "give one port, or --config FILE for many");
      }
      const settings = context.settings();
      const file = flags.config === undefined ? null : readBridgeConfig(flags.config);
      const plans = file?.ports ?? [planOf(settings, port as string, flags)];
      const relay = file?.relay ?? null;
      const url =
        relay === null ? settings.socketUrl() : `${httpBase(relay)}/wss`.replace(/^http/, "ws");
      if (flags.check === true) {
        if (flags.json === true) answerJson({ ok: true, ports: plans.map(({ name }) => name) });
        else answer(`${plans.length} port${plans.length === 1 ? "" : "s"}: good`);
        return;
      }
      await run(plans, url, flags.json === true);
    });
};
