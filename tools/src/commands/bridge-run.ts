/** What `blindrelay bridge` does with its flags. Rejects with a Failure. */

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
import { DEFAULT_SETTINGS, messageOf } from "../serial/port.ts";
import type { BridgeFlags } from "./bridge.ts";
import { interrupted } from "./connect.ts";

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

export const bridge = async (
  settings: () => Settings,
  port: string | undefined,
  flags: BridgeFlags,
): Promise<void> => {
  if (flags.schema !== undefined) {
    answerJson(flags.schema === "config" ? BridgeConfig : Mapping);
    return;
  }
  if ((port === undefined) === (flags.config === undefined)) {
    throw new Failure("usage", "give one port, or --config FILE for many");
  }
  const file = flags.config === undefined ? null : readBridgeConfig(flags.config);
  const plans = file?.ports ?? [planOf(settings(), port as string, flags)];
  const relay = file?.relay ?? null;
  const url =
    relay === null ? settings().socketUrl() : `${httpBase(relay)}/wss`.replace(/^http/, "ws");
  if (flags.check === true) {
    if (flags.json === true) answerJson({ ok: true, ports: plans.map(({ name }) => name) });
    else answer(`${plans.length} port${plans.length === 1 ? "" : "s"}: good`);
    return;
  }
  await run(plans, url, flags.json === true);
};
