/**
 * The bridge's configuration file: many ports, each its own agent, or several raw ones under one
 * agent where they have the same credentials and state folder. Its paths are relative to it.
 * Secrets are in separate files, the output of `blindrelay agent export AGENT --json`.
 */
import { dirname, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Access, OpeningLines } from "@blindrelay/agent-sdk/bridge";
import { AGENT_ID_PATTERN, tokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { isVersion } from "@blindrelay/protocol/crypto";
import { DEFAULT_SETTINGS, type LineSettings, readSettings } from "@blindrelay/protocol/serial";
import { type Static, Type } from "typebox";
import { Check, Errors } from "typebox/schema";
import type { Identity } from "../account/identity.ts";
import { failing } from "../base/failing.ts";
import { printStatus } from "../base/output.ts";
import { readJsonFile } from "../base/text-file.ts";
import { otherReadersOf } from "../config/file-readers.ts";
import { ADDRESS_FORMS, type PortAddress, parseAddress } from "../serial/address.ts";
import { linesProblem } from "../serial/open.ts";
import { type LineMapping, readMapping } from "./mapping.ts";

const strict = { additionalProperties: false } as const;

const Port = Type.Object(
  {
    port: Type.String({ description: ADDRESS_FORMS }),
    mode: Type.Union([Type.Literal("sealed"), Type.Literal("lines"), Type.Literal("raw")]),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "For people." })),
    credentials: Type.Optional(
      Type.String({
        description:
          "File that others cannot read: {agent_id, api_token, agent_token, packet_version, device_secret?}. Not for sealed.",
      }),
    ),
    state_dir: Type.Optional(
      Type.String({
        description: "The agent's own folder. Not for sealed; raw ports of one agent share it.",
      }),
    ),
    mapping: Type.Optional(Type.String({ description: "Mapping file of mode lines." })),
    baud_rate: Type.Optional(Type.Integer()),
    data_bits: Type.Optional(Type.Integer()),
    parity: Type.Optional(Type.String()),
    stop_bits: Type.Optional(Type.Number()),
    flow_control: Type.Optional(Type.String()),
    dtr: Type.Optional(Type.Boolean({ description: "Set as soon as the port is open." })),
    rts: Type.Optional(Type.Boolean({ description: "Set as soon as the port is open." })),
    hupcl: Type.Optional(
      Type.Boolean({
        description:
          "Whether closing the port lowers DTR and RTS (true), which restarts many boards at the next opening.",
      }),
    ),
    byte_delay_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000,
        description: "Pause after each byte, for a device that loses bytes at the line's rate.",
      }),
    ),
    access: Type.Optional(
      Type.Union([Type.Literal("first"), Type.Literal("takeover"), Type.Literal("read-only")], {
        description:
          "Of mode raw: who came first writes (default), a later one may take over, or nobody writes.",
      }),
    ),
    write_timeout_ms: Type.Optional(Type.Integer({ minimum: 100, maximum: 600_000 })),
  },
  strict,
);

export const BridgeConfig = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    relay: Type.Optional(
      Type.String({ description: "Default: BLINDRELAY_URL, else the profile." }),
    ),
    ports: Type.Array(Port, { minItems: 1, maxItems: 256 }),
  },
  { ...strict, title: "blindrelay bridge: configuration" },
);

type PortFile = Static<typeof Port>;
type BridgeFile = Static<typeof BridgeConfig>;

export type PortMode =
  | { readonly kind: "sealed" }
  | { readonly kind: "raw"; readonly identity: Identity; readonly stateDir: string }
  | {
      readonly kind: "lines";
      readonly identity: Identity;
      readonly stateDir: string;
      readonly mapping: LineMapping;
    };

/** One port, checked. */
export interface PortPlan {
  readonly name: string;
  readonly port: string;
  readonly address: PortAddress;
  readonly settings: LineSettings;
  readonly lines: OpeningLines;
  readonly writeTimeoutMs: number;
  readonly byteDelayMs: number;
  /** Of mode raw. */
  readonly access: Access;
  readonly mode: PortMode;
}

export const DEFAULT_WRITE_TIMEOUT_MS = 10_000;
/** What one agent can list in one packet. */
const MAX_PORTS_OF_AGENT = 64;

export const readMappingFile = (path: string): LineMapping => {
  const file = readJsonFile(path, "the mapping");
  return failing("usage", `the mapping ${path}: `, () => readMapping(file));
};

/**
 * The identity of an agent, checked before anything is sent. `where` names the source in errors.
 */
const checkIdentity = (
  given: {
    readonly [field in
      | "agent_id"
      | "api_token"
      | "agent_token"
      | "packet_version"
      | "device_secret"]?: unknown;
  },
  where: string,
): Identity => {
  const { agent_id, api_token, agent_token, packet_version = "1", device_secret = null } = given;
  if (typeof agent_id !== "string" || !new RegExp(AGENT_ID_PATTERN).test(agent_id)) {
    throw new Failure("usage", `${where}: agent_id is missing or invalid`);
  }
  const secret = (value: unknown, kind: "agent" | "e2e", name: string): string => {
    if (typeof value !== "string") throw new Failure("usage", `${where}: ${name} is missing`);
    const problem = tokenProblem(value, kind);
    if (problem !== null) throw new Failure("refused", `${where}: ${name}: ${problem}`);
    return value;
  };
  if (!isVersion(packet_version)) {
    throw new Failure("usage", `${where}: packet_version must be "1", "2", "3" or "4"`);
  }
  if (device_secret !== null && typeof device_secret !== "string") {
    throw new Failure("usage", `${where}: device_secret must be a text`);
  }
  return {
    agentId: agent_id,
    relayToken: secret(api_token, "agent", "api_token"),
    agentToken: secret(agent_token, "e2e", "agent_token"),
    version: packet_version,
    deviceSecret: device_secret,
  };
};

const readCredentials = (path: string): Identity => {
  const value = readJsonFile(path, "the credentials");
  const readers = otherReadersOf(path);
  if (readers === "everybody") {
    throw new Failure("usage", `others can read the credentials ${path}: chmod 600 ${path}`);
  }
  if (readers === "group") {
    printStatus(
      `warning: a group can read the credentials ${path}; if not meant: chmod 600 ${path}`,
    );
  }
  return checkIdentity((value ?? {}) as object, path);
};

export const readAddress = (text: string): PortAddress => {
  const address = parseAddress(text);
  if (address === null) throw new Failure("usage", `not a port: ${text} (${ADDRESS_FORMS})`);
  return address;
};

/** Throws a Failure for lines that this address does not have. */
export const checkLines = (address: PortAddress, lines: OpeningLines): OpeningLines => {
  const problem = linesProblem(address, lines);
  if (problem !== null) throw new Failure("usage", problem);
  return lines;
};

/** Why a mode cannot use these settings, or null. */
export const modeProblem = (
  mode: PortMode["kind"],
  { dataBits, flowControl }: LineSettings,
): string | null => {
  if (mode !== "sealed") return null;
  if (flowControl === "xon") return "mode sealed uses every byte, and xon takes two of them away";
  return dataBits === 8 ? null : "mode sealed needs 8 data bits";
};

const planMode = (port: PortFile, folder: string, where: string): PortMode => {
  const { mode } = port;
  const demand = (value: string | undefined, name: string): string => {
    if (value === undefined) throw new Failure("usage", `${where}: ${name} is missing`);
    return resolve(folder, value);
  };
  if (mode === "sealed") return { kind: "sealed" };
  const stateDir = demand(port.state_dir, "state_dir");
  const identity = readCredentials(demand(port.credentials, "credentials"));
  if (mode === "raw") return { kind: "raw", identity, stateDir };
  const mapping = readMappingFile(demand(port.mapping, "mapping"));
  return { kind: "lines", identity, stateDir, mapping };
};

const planPort = (port: PortFile, index: number, folder: string): PortPlan => {
  const where = `ports[${index}]`;
  const { baud_rate, data_bits, parity, stop_bits, flow_control } = port;
  const given = { baud_rate, data_bits, parity, stop_bits, flow_control };
  const named = Object.entries(given).filter(([, value]) => value !== undefined);
  const settings = failing("usage", `${where}: `, () =>
    readSettings(Object.fromEntries(named), DEFAULT_SETTINGS),
  );
  const problem = modeProblem(port.mode, settings);
  if (problem !== null) throw new Failure("usage", `${where}: ${problem}`);
  const mode = planMode(port, folder, where);
  const address = readAddress(port.port);
  const { dtr, rts, hupcl } = port;
  if (port.access !== undefined && port.mode !== "raw") {
    throw new Failure("usage", `${where}: access goes with mode raw`);
  }
  return {
    // Without one, its agents decide; see readBridgeConfig.
    name: port.name ?? "",
    port: port.port,
    address,
    settings,
    lines: checkLines(address, { dtr, rts, hupcl }),
    writeTimeoutMs: port.write_timeout_ms ?? DEFAULT_WRITE_TIMEOUT_MS,
    byteDelayMs: port.byte_delay_ms ?? 0,
    access: port.access ?? "first",
    mode,
  };
};

/** The ports of each agent together, and each sealed one alone. */
export const byAgent = (plans: readonly PortPlan[]): readonly (readonly PortPlan[])[] => {
  const groups = new Map<unknown, PortPlan[]>();
  for (const plan of plans) {
    const key = plan.mode.kind === "sealed" ? plan : plan.mode.identity.agentId;
    groups.set(key, [...(groups.get(key) ?? []), plan]);
  }
  return [...groups.values()];
};

/** Refuses what one agent cannot have. */
const checkAgent = ([first, ...more]: readonly PortPlan[]): void => {
  if (first === undefined || first.mode.kind === "sealed") return;
  const { kind, identity, stateDir } = first.mode;
  const refuse = (why: string): never => {
    throw new Failure("usage", `several ports have the agent ${identity.agentId}: ${why}`);
  };
  if (more.length >= MAX_PORTS_OF_AGENT) refuse(`it can have ${MAX_PORTS_OF_AGENT}`);
  for (const { mode } of more) {
    if (mode.kind !== "raw" || kind !== "raw") return refuse("only mode raw allows that");
    if (mode.stateDir !== stateDir) refuse("they need the same state_dir");
    if (!isDeepStrictEqual(mode.identity, identity)) refuse("they need the same credentials");
  }
};

/** Refuses two ports with the same value where it must be unique. */
const refuseDoubles = (plans: readonly PortPlan[]): void => {
  const seen = new Set<string>();
  const claim = (what: string): void => {
    if (seen.has(what)) throw new Failure("usage", `two ports have the same ${what}`);
    seen.add(what);
  };
  for (const { name, port } of plans) {
    claim(`name ${name}`);
    claim(`port ${port}`);
    // Both are what `attach AGENT PORT` may say.
    if (plans.some((other) => other.port === name && port !== name)) {
      throw new Failure("usage", `the name ${name} is another port`);
    }
  }
  for (const [first] of byAgent(plans)) {
    if (first?.mode.kind === "lines" || first?.mode.kind === "raw") {
      claim(`state_dir ${first.mode.stateDir}`);
    }
  }
};

/**
 * Reads and checks the file and all files that it names. Throws a Failure with the place and the
 * reason.
 */
export const readBridgeConfig = (
  path: string,
): { readonly relay: string | null; readonly ports: readonly PortPlan[] } => {
  const value = readJsonFile(path, "the configuration");
  if (!Check(BridgeConfig, value)) {
    const [, [first]] = Errors(BridgeConfig, value);
    // The error for an unknown member.
    const message = first?.message === "schema is false" ? "is an unknown setting" : first?.message;
    const what = `${first?.instancePath || "the file"} ${message ?? "is none"}`;
    throw new Failure("usage", `the configuration ${path}: ${what}`);
  }
  const file = value as BridgeFile;
  const ports = file.ports.map((port, index) => planPort(port, index, dirname(resolve(path))));
  const agents = byAgent(ports);
  for (const group of agents) checkAgent(group);
  const isAlone = (plan: PortPlan): boolean => agents.some(([one, two]) => one === plan && !two);
  const named = ports.map((plan) => {
    const { name, port, mode } = plan;
    const own = mode.kind === "sealed" || !isAlone(plan) ? port : mode.identity.agentId;
    return { ...plan, name: name === "" ? own : name };
  });
  refuseDoubles(named);
  return { relay: file.relay ?? null, ports: named };
};
