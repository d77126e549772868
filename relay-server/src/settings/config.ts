/**
 * All settings of an operator, in one schema. A value comes from the flags (`--metrics-port`), else
 * from the environment (`BLINDRELAY_METRICS_PORT`), else from the configuration file
 * (`{"metricsPort": 9090}`), else it is the default here. The default data folder depends on the
 * system (default-data-dir.ts).
 */
import { MAX_MESSAGE_BYTES, OUTBOX_BYTES, RATE_BURST, RATE_PER_SECOND } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import {
  AGENTS_PER_USER,
  ANONYMOUS_REQUESTS_PER_MINUTE,
  METADATA_BYTES_PER_USER,
  REQUESTS_AT_ONCE,
  REQUESTS_PER_MINUTE,
} from "../control/quotas.ts";
import { CLIENTS_PER_USER, WAITING_PER_ADDRESS } from "../core/limits/limits.ts";
import { defaultDataFolder } from "./default-data-dir.ts";
import { type Environment, ownEnvironment } from "./environment.ts";

const port = (fallback: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 65535, default: fallback, description });
const positive = (fallback: number, description: string) =>
  Type.Integer({ minimum: 1, default: fallback, description });
const host = (fallback: string, description: string) =>
  Type.String({ minLength: 1, default: fallback, description });
const word = (pattern: string, fallback: string, description: string) =>
  Type.String({ pattern, default: fallback, description });
const path = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
const list = (description: string) => Type.Array(Type.String(), { default: [], description });

export const Config = Type.Object(
  {
    data: Type.String({ minLength: 1, description: "folder of the store and the master key" }),
    host: host("127.0.0.1", "address to listen on"),
    port: port(8080, "port to listen on; 0 picks one"),
    metricsHost: host("127.0.0.1", "address of /metrics"),
    metricsPort: port(9090, "port of /metrics; 0 picks one"),
    publicUrl: Type.Optional(
      Type.String({
        pattern: "^https?://",
        description: "http(s) address at which devices reach the relay, for exports",
      }),
    ),
    trustedProxies: list("addresses or ranges, comma-separated, whose X-Forwarded-For is trusted"),
    corsOrigin: Type.Array(Type.String({ pattern: "^https?://[^/\\s*]+$" }), {
      default: [],
      description:
        "origins, such as https://app.example, whose browser pages may use the REST API; repeatable, or comma-separated",
    }),
    store: word(
      "^(sqlite$|postgres(ql)?://)",
      "sqlite",
      "sqlite (in the data folder), or postgres://...",
    ),
    bus: word(
      "^(local$|(nats|tls)://[^,]+(,((nats|tls)://)?[^,]+)*$)",
      "local",
      "local (one relay), or nats://... of the nodes that share the store; several servers with commas",
    ),
    busPrefix: word(
      "^[A-Za-z0-9_-]{1,64}$",
      "blindrelay",
      "first word of the bus's subjects, so that clusters can share a server",
    ),
    busCa: path("PEM file of the authority that signed the bus's certificate; with it, TLS"),
    busCert: path("PEM file of this relay's certificate for the bus; with it, TLS"),
    busKey: path("PEM file of that certificate's key"),
    busCreds: path("NATS credentials file (.creds) for the bus, instead of a password"),
    drainDelay: Type.Integer({
      minimum: 0,
      maximum: 300,
      default: 0,
      description: "at shutdown, seconds between reporting not ready and disconnecting peers",
    }),
    releaseKeys: list(
      "Ed25519 public keys, base64url, comma-separated, whose releases are accepted",
    ),
    maxReleaseBytes: positive(67_108_864, "largest accepted firmware artifact"),
    logLevel: Type.Union(
      [
        Type.Literal("trace"),
        Type.Literal("debug"),
        Type.Literal("info"),
        Type.Literal("warn"),
        Type.Literal("error"),
        Type.Literal("silent"),
      ],
      { default: "info", description: "trace, debug, info, warn, error or silent" },
    ),
    maxMessageBytes: positive(MAX_MESSAGE_BYTES, "longest accepted WebSocket message"),
    outboxBytes: positive(OUTBOX_BYTES, "bytes that may wait for one connection"),
    ratePerSecond: positive(RATE_PER_SECOND, "messages a second from one connection"),
    rateBurst: positive(RATE_BURST, "messages at once from one connection"),
    waitingPerAddress: positive(
      WAITING_PER_ADDRESS,
      "connections from one address that have not authenticated; more get a 503",
    ),
    clientsPerUser: positive(
      CLIENTS_PER_USER,
      "connections of one user's clients, and as many with access keys; one more is refused",
    ),
    agentsPerUser: positive(AGENTS_PER_USER, "agents of one user"),
    metadataBytesPerUser: positive(
      METADATA_BYTES_PER_USER,
      "bytes of the metadata of all agents of one user",
    ),
    requestsPerMinute: positive(
      REQUESTS_PER_MINUTE,
      "REST requests a minute of one user, and of each agent; more get a 429",
    ),
    anonymousRequestsPerMinute: positive(
      ANONYMOUS_REQUESTS_PER_MINUTE,
      "REST requests a minute from one address without good credentials",
    ),
    requestsAtOnce: positive(
      REQUESTS_AT_ONCE,
      "REST requests of one user worked on at a time; the others wait",
    ),
    tlsCert: path("PEM file of the certificate; with it, https and wss"),
    tlsKey: path("PEM file of its key; both are read again when they change, and on SIGHUP"),
  },
  { additionalProperties: false },
);
export type Config = Static<typeof Config>;
export type ConfigKey = keyof Config;
type Settings = { readonly [key: string]: unknown };

export const CONFIG_KEYS = Object.keys(Config.properties) as ConfigKey[];

/** `metricsPort` as `--metrics-port`. */
export const flagOf = (key: ConfigKey): string =>
  `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** `metricsPort` as `BLINDRELAY_METRICS_PORT`. */
export const variableOf = (key: ConfigKey): string =>
  `BLINDRELAY_${flagOf(key).slice(2).replaceAll("-", "_").toUpperCase()}`;

/**
 * The configuration from all its sources. `flags` and `environment` contain text, `file` the parsed
 * file. Throws a Failure (usage) that names each invalid setting.
 */
export const readConfig = (
  flags: Settings,
  given: Environment = {},
  file: Settings = {},
): Config => {
  const environment = ownEnvironment(given);
  const unknown = Object.keys(file).filter((key) => !Object.hasOwn(Config.properties, key));
  if (unknown.length > 0) {
    throw new Failure(
      "usage",
      `unknown setting in the configuration file: ${unknown.join(", ")}; known are ${CONFIG_KEYS.join(", ")}`,
    );
  }
  const settings: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) {
    const value = flags[key] ?? environment[variableOf(key)] ?? file[key];
    if (value !== undefined) settings[key] = fromText(Config.properties[key], value);
  }
  settings.data ??= defaultDataFolder(environment);
  const config = Value.Default(Config, settings);
  if (Value.Check(Config, config)) {
    if (config.bus !== "local" && config.store === "sqlite") throw new Failure("usage", BUS_ALONE);
    if ((config.busCert === undefined) !== (config.busKey === undefined)) {
      throw new Failure("usage", "--bus-cert and --bus-key belong together: give both, or neither");
    }
    if ((config.tlsCert === undefined) === (config.tlsKey === undefined)) return config;
    throw new Failure("usage", "--tls-cert and --tls-key belong together: give both, or neither");
  }
  // A union reports itself, and each of its values.
  const errors = Value.Errors(Config, config).filter(({ keyword }) => keyword !== "const");
  throw new Failure("usage", errors.map(describe).join("; "));
};

const BUS_ALONE =
  "--bus connects relays that share a store: give --store postgres://... too, or leave it out";

/** The configuration for display: passwords in addresses are hidden. */
export const maskConfig = (config: Config): Config => ({
  ...config,
  store: maskAddress(config.store),
  bus: maskAddress(config.bus),
});

const maskAddress = (address: string): string => {
  if (!address.includes("://")) return address;
  // If a password contains an unescaped "#" or "/", its end is unknown.
  if (!URL.canParse(address)) return address.replace(/:.*/s, "://***");
  const url = new URL(address);
  if (url.password !== "") url.password = "***";
  // NATS accepts a token as a user without a password.
  else if (url.username !== "" && !url.protocol.startsWith("postgres")) url.username = "***";
  for (const name of url.searchParams.keys()) {
    if (/pass|key|secret/i.test(name)) url.searchParams.set(name, "***");
  }
  return String(url);
};

/** Flags and variables are text: numbers and lists are parsed from it. */
const fromText = (schema: object, value: unknown): unknown => {
  if (typeof value !== "string") return value;
  const type = "type" in schema ? schema.type : null;
  if (type === "array") {
    return value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  }
  return type === "integer" && /^\d+$/.test(value) ? Number(value) : value;
};

const describe = (error: {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}): string => {
  const missing = (error.params as { requiredProperties?: string[] }).requiredProperties;
  const key = (missing?.[0] ?? error.instancePath.split("/")[1] ?? "") as ConfigKey;
  if (!CONFIG_KEYS.includes(key)) return error.message;
  const { description } = Config.properties[key] as { description?: string };
  const message = error.keyword === "anyOf" ? `must be ${description}` : error.message;
  const problem = missing === undefined ? message : "is missing";
  return `${flagOf(key)} (or ${variableOf(key)}) ${problem}`;
};
