/** Implements `blindrelay bridge`. Rejects with a Failure. */

import { messageOf } from "@blindrelay/agent-sdk/bridge";
import { Failure } from "@blindrelay/protocol/command-line";
import { DEFAULT_SETTINGS, type FlowControl } from "@blindrelay/protocol/serial";
import { identify } from "../account/identity.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printResult, printStatus, serveUnread } from "../base/output.ts";
import { Bridge, type BridgeNews } from "../bridge/bridge.ts";
import {
  BridgeConfig,
  byAgent,
  checkLines,
  DEFAULT_WRITE_TIMEOUT_MS,
  modeProblem,
  type PortMode,
  type PortPlan,
  readAddress,
  readBridgeConfig,
  readMappingFile,
} from "../bridge/config.ts";
import { Mapping } from "../bridge/mapping.ts";
import { httpBase, type Settings } from "../config/settings.ts";

export interface BridgeFlags extends JsonFlag {
  readonly mode?: "sealed" | "lines" | "raw";
  readonly mapping?: string;
  readonly baud?: number;
  readonly flowControl?: FlowControl;
  readonly dtr?: boolean;
  readonly rts?: boolean;
  readonly hupcl?: boolean;
  readonly agent?: string;
  readonly stateDir?: string;
  readonly config?: string;
  readonly check?: boolean;
  readonly schema?: "config" | "mapping";
}

const modeOf = async (settings: Settings, flags: BridgeFlags): Promise<PortMode> => {
  const kind = flags.mode ?? "sealed";
  if (kind !== "lines" && flags.mapping !== undefined) {
    throw new Failure("usage", "--mapping goes with --mode lines");
  }
  if (kind === "sealed") {
    if (flags.agent === undefined && flags.stateDir === undefined) return { kind };
    const whose = "in sealed mode the board says which agent it is";
    throw new Failure("usage", `--agent and --state-dir go with lines and raw: ${whose}`);
  }
  if (kind === "lines" && flags.mapping === undefined) {
    throw new Failure(
      "usage",
      "--mode lines needs --mapping FILE (blindrelay bridge --schema mapping)",
    );
  }
  const mapping = kind === "lines" ? readMappingFile(flags.mapping as string) : null;
  const { stateDir, ...identity } = await identify(settings, flags);
  return mapping === null
    ? { kind: "raw", identity, stateDir }
    : { kind: "lines", identity, stateDir, mapping };
};

const planOf = async (settings: Settings, port: string, flags: BridgeFlags): Promise<PortPlan> => {
  const address = readAddress(port);
  const lines = checkLines(address, flags);
  const lineSettings = {
    ...DEFAULT_SETTINGS,
    ...(flags.baud === undefined ? {} : { baudRate: flags.baud }),
    ...(flags.flowControl === undefined ? {} : { flowControl: flags.flowControl }),
  };
  const problem = modeProblem(flags.mode ?? "sealed", lineSettings);
  if (problem !== null) throw new Failure("usage", problem);
  const mode = await modeOf(settings, flags);
  return {
    name: mode.kind === "sealed" ? port : mode.identity.agentId,
    port,
    address,
    lines: { dtr: lines.dtr, rts: lines.rts, hupcl: lines.hupcl },
    settings: lineSettings,
    writeTimeoutMs: DEFAULT_WRITE_TIMEOUT_MS,
    byteDelayMs: 0,
    access: "first",
    mode,
  };
};

const asText = (news: BridgeNews): string => {
  if (news.event === "agent") {
    const why = news.advice === null ? "" : ` (${news.advice})`;
    return `${news.name}: ${news.agent_id} is ${news.state}${why}`;
  }
  if (news.state === "open") return `${news.name}: ${news.port} is open`;
  if (news.state === "absent") return `${news.name}: ${news.reason}; retrying until it is there`;
  return `${news.name}: ${news.port} was lost (${news.reason}) and will be reopened when it is back`;
};

/**
 * Runs every port until it is stopped; rejects when every agent has failed permanently.
 */
const run = async (plans: readonly PortPlan[], url: string, json: boolean): Promise<void> => {
  let bridges: Bridge[] = [];
  let failures = 0;
  serveUnread();
  try {
    await new Promise<void>((resolve, reject) => {
      bridges = byAgent(plans).map((group) => {
        const bridge: Bridge = new Bridge({
          plans: group,
          url,
          news: (news) => (json ? printJson(news) : printStatus(asText(news))),
          failed: (failure) => {
            failures++;
            // A problem with one agent does not affect the others.
            if (failures === bridges.length) reject(failure);
            else {
              const what = group.length === 1 ? "this port is" : "its ports are";
              printStatus(`${bridge.name}: ${messageOf(failure)}; ${what} given up`);
            }
          },
          log: (level, message, fields) => {
            if (level === "debug" || level === "info") return;
            const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
            printStatus(`${bridge.name}: ${level}: ${message}${more}`);
          },
        });
        return bridge;
      });
      for (const bridge of bridges) bridge.start();
      interrupted().then(resolve);
    });
  } finally {
    await Promise.all(bridges.map((bridge) => bridge.stop()));
  }
};

const FLAGS_OF_ONE_PORT = [
  "mode",
  "mapping",
  "baud",
  "flowControl",
  "dtr",
  "rts",
  "hupcl",
  "agent",
  "stateDir",
] as const satisfies readonly (keyof BridgeFlags)[];

const flagOf = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (big) => `-${big.toLowerCase()}`)}`;

export const bridge = async (
  settings: () => Settings,
  port: string | undefined,
  flags: BridgeFlags,
): Promise<void> => {
  if (flags.schema !== undefined) {
    printJson(flags.schema === "config" ? BridgeConfig : Mapping);
    return;
  }
  if ((port === undefined) === (flags.config === undefined)) {
    throw new Failure("usage", "give one port, or --config FILE for many");
  }
  const alone = FLAGS_OF_ONE_PORT.find((name) => flags[name] !== undefined);
  if (flags.config !== undefined && alone !== undefined) {
    throw new Failure("usage", `--config names all ports: omit ${flagOf(alone)}`);
  }
  const file = flags.config === undefined ? null : readBridgeConfig(flags.config);
  const plans = file?.ports ?? [await planOf(settings(), port as string, flags)];
  const relay = file?.relay ?? null;
  const url =
    relay === null ? settings().socketUrl() : `${httpBase(relay)}/wss`.replace(/^http/, "ws");
  if (flags.check === true) {
    printResult(
      flags,
      { ok: true, ports: plans.map(({ name }) => name) },
      `${plans.length} port${plans.length === 1 ? "" : "s"}: good`,
    );
    return;
  }
  await run(plans, url, flags.json === true);
};
